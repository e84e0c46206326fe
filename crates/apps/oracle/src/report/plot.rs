//! The plots of a report.

use super::svg::{HEIGHT, Svg, WIDTH, steps};
use super::{Point, Reason, Report};
use crate::ScoreSource;

/// The left edge of the plot area of vertical bars.
const LEFT: f64 = 52.0;
const RIGHT: f64 = WIDTH - 12.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = HEIGHT - 46.0;

/// The maximum number of points in a plot; more would not be distinguishable.
const MAX_POINTS: usize = 2_000;

/// The maximum number of reasons in a plot.
const MAX_REASONS: usize = 10;

/// The specification's limit of the latency.
const LIMIT_MS: u64 = 10_000;

/// The bounds of the latency's bars in milliseconds: 1, 2, 5 and so on, including the specification's ten seconds.
const BOUNDS_MS: &[u64] =
    &[1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000];

/// Returns the plot of latencies.
pub(super) fn latency(report: &Report) -> String {
    let sorted = &report.points.latencies_ms;
    // Only the range from the first bar with scores to the last is drawn.
    let bucket = |milliseconds: u64| BOUNDS_MS.partition_point(|bound| *bound < milliseconds);
    let (first, last) = match (sorted.first(), sorted.last()) {
        (Some(first), Some(last)) => (bucket(*first), bucket(*last)),
        _ => (0, 0),
    };
    let name = |bucket: usize| match BOUNDS_MS.get(bucket) {
        Some(bound) => format!("≤ {}", time(*bound)),
        None => format!("> {}", time(BOUNDS_MS.last().copied().unwrap_or_default())),
    };
    let mut bars: Vec<(String, u64)> = (first..=last).map(|bucket| (name(bucket), 0)).collect();
    for milliseconds in sorted {
        if let Some((_, count)) = bars.get_mut(bucket(*milliseconds) - first) {
            *count += 1;
        }
    }
    let limit = bucket(LIMIT_MS);
    let limit = (first..last).contains(&limit).then(|| limit - first + 1);
    upright("Latency of scores", "scores", &bars, limit.map(|after| (after, "limit: p95 < 10 s")))
}

/// Returns the plot of attempts.
pub(super) fn attempts(report: &Report) -> String {
    let name = |attempts: u32| match attempts {
        0 => "no answer".to_owned(),
        1 => "1 attempt".to_owned(),
        many => format!("{many} attempts"),
    };
    let most = report.attempts.keys().copied().max().unwrap_or(0).max(3);
    let bars: Vec<(String, u64)> = (0..=most)
        .map(|attempts| (name(attempts), report.attempts.get(&attempts).copied().unwrap_or(0)))
        .filter(|(name, count)| *count > 0 || name != "no answer")
        .collect();
    upright("Attempts of scores", "scores", &bars, None)
}

/// Returns the plot of scores against expected scores.
pub(super) fn expected(report: &Report) -> String {
    let mut svg = Svg::new("Scores against what was expected");
    let x = |score: u16| LEFT + (RIGHT - LEFT) * f64::from(score) / 1000.0;
    let y = |score: u16| BOTTOM - (BOTTOM - TOP) * f64::from(score) / 1000.0;
    for score in (0..=1000).step_by(200) {
        svg.line("grid", (x(0), y(score)), (x(1000), y(score)));
        svg.line("grid", (x(score), y(0)), (x(score), y(1000)));
        svg.text((x(score), BOTTOM + 16.0), "middle", &score.to_string());
        svg.text((LEFT - 6.0, y(score) + 4.0), "end", &score.to_string());
    }
    svg.text(((LEFT + RIGHT) / 2.0, HEIGHT - 10.0), "middle", "expected (line: the whole band)");
    svg.upright((14.0, (TOP + BOTTOM) / 2.0), "score");
    svg.line("target", (x(0), y(0)), (x(1000), y(1000)));
    for Point { expected, score, source, .. } in report.points.scores.iter().take(MAX_POINTS) {
        let (class, by) = match source {
            ScoreSource::Ai => ("ai", "the model"),
            ScoreSource::Fallback => ("fallback", "the fallback"),
        };
        let title = format!("{score} by {by}, expected {} to {}", expected.min, expected.max);
        svg.line(&format!("band {class}"), (x(expected.min), y(*score)), (x(expected.max), y(*score)));
        svg.dot(class, (x(expected.middle()), y(*score)), &title);
    }
    svg.finish()
}

/// Returns the plot of rejection reasons, as horizontal bars.
pub(super) fn reasons(report: &Report) -> String {
    let reasons = report.reasons.get(..MAX_REASONS).unwrap_or(&report.reasons);
    let mut svg = Svg::new("Reasons of retries");
    let left = 250.0;
    let most = reasons.first().map_or(0, |reason| reason.count);
    let steps = steps(most);
    let end = steps.last().copied().unwrap_or(1).max(1) as f64;
    let x = |count: u64| left + (RIGHT - left) * count as f64 / end;
    for step in &steps {
        svg.line("grid", (x(*step), TOP), (x(*step), BOTTOM));
        svg.text((x(*step), BOTTOM + 16.0), "middle", &step.to_string());
    }
    svg.text(((left + RIGHT) / 2.0, HEIGHT - 10.0), "middle", "violations");
    let height = (BOTTOM - TOP) / reasons.len().max(4) as f64;
    for (row, Reason { class, path, count }) in reasons.iter().enumerate() {
        let y = TOP + height * row as f64;
        let name = format!("{class} {path}");
        let title = format!("{name}: {count}");
        svg.bar("ai", (left, y + height * 0.15), (x(*count) - left, height * 0.7), &title);
        svg.text((left - 6.0, y + height / 2.0 + 4.0), "end", &name);
    }
    svg.finish()
}

/// Returns a plot of vertical bars, with a line after one of them.
fn upright(label: &str, unit: &str, bars: &[(String, u64)], limit: Option<(usize, &str)>) -> String {
    let mut svg = Svg::new(label);
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let steps = steps(most);
    let end = steps.last().copied().unwrap_or(1).max(1) as f64;
    let y = |count: u64| BOTTOM - (BOTTOM - TOP) * count as f64 / end;
    for step in &steps {
        svg.line("grid", (LEFT, y(*step)), (RIGHT, y(*step)));
        svg.text((LEFT - 6.0, y(*step) + 4.0), "end", &step.to_string());
    }
    svg.upright((14.0, (TOP + BOTTOM) / 2.0), unit);
    let width = (RIGHT - LEFT) / bars.len().max(1) as f64;
    // Many labels take two rows, so that they do not overlap.
    let rows = if bars.len() > 8 { 2 } else { 1 };
    for (place, (name, count)) in bars.iter().enumerate() {
        let x = LEFT + width * place as f64;
        let title = format!("{name}: {count}");
        svg.bar("ai", (x + width * 0.1, y(*count)), (width * 0.8, BOTTOM - y(*count)), &title);
        let below = BOTTOM + 16.0 + 14.0 * (place % rows) as f64;
        svg.text((x + width / 2.0, below), "middle", name);
    }
    if let Some((after, text)) = limit {
        let x = LEFT + width * after as f64;
        svg.line("target", (x, TOP), (x, BOTTOM));
        svg.text((x - 4.0, TOP + 10.0), "end", text);
    }
    svg.finish()
}

fn time(milliseconds: u64) -> String {
    if milliseconds < 1_000 { format!("{milliseconds} ms") } else { format!("{} s", milliseconds / 1_000) }
}
