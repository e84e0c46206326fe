-- The budget of a key with a period is that of the present period (UTC; weeks begin on Mondays): so are the spending and the rest of it.
DROP VIEW spend;
CREATE VIEW spend AS
SELECT key, role, budget_usd, period, (spent - before) / 1e6 AS spent_usd, spent / 1e6 AS total_usd, held_usd,
    budget_usd - (spent - before) / 1e6 - held_usd AS left_usd, expires_at, is_revoked
FROM (
    SELECT name AS key, role, budget / 1e6 AS budget_usd, period, spent,
        iif(period_start < 1000 * strftime('%s', 'now', 'start of day', CASE period
            WHEN 'week' THEN 'weekday 0' WHEN 'month' THEN 'start of month' ELSE '+0 days' END,
            iif(period = 'week', '-6 days', '+0 days')), iif(period IS NULL, 0, spent), spent_before) AS before,
        held / 1e6 AS held_usd, datetime(expires / 1000, 'unixepoch') AS expires_at, revoked IS NOT NULL AS is_revoked
    FROM key
);
