//! The result as a page of HTML.

use std::fmt::Write as _;

use formwork_evidence::{html_text, html_value};
use serde_json::Value;

use crate::{Baseline, Comparison, Grade, Report};

const STYLE: &str = ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:72em;margin:2em auto;padding:0 1em;\
color:light-dark(#222,#e8ebf0);background:light-dark(#fff,#14181f)}\
table{border-collapse:collapse;width:100%;margin:1em 0}th,td{text-align:left;padding:.25em .6em;border-bottom:1px solid light-dark(#ddd,#38404d);\
vertical-align:top;overflow-wrap:anywhere}td.n,th.n{text-align:right;white-space:nowrap}.wrong{color:light-dark(#b00020,#ff8a80)}.missing{color:light-dark(#8a5a00,#e0b050)}\
.invented{color:light-dark(#6a1b9a,#d6a3ff)}.wide{overflow-x:auto}h1,h2,p{overflow-wrap:anywhere}summary{cursor:pointer;padding:.3em 0}code{font-size:.92em}";

/// Returns a page about an evaluation: for each configuration the score, the paths, and the worst documents with their differences, and
/// the comparison of each two configurations. The page loads nothing.
///
/// ```
/// use formwork_eval::{Comparison, Evaluation, Profile, page};
///
/// let mut evaluation = Evaluation::new(Profile::Default);
/// evaluation.add("<1>".into(), None, &serde_json::json!({"a": 1}), None)?;
/// assert!(page(&Comparison::new(vec![evaluation.report(1)], 1), "gold.jsonl").contains("&lt;1&gt;"));
/// # Ok::<(), String>(())
/// ```
pub fn page(comparison: &Comparison, title: &str) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style><header><h1>{title}</h1></header><main>",
        title = html_text(title),
    );
    if !comparison.pairs.is_empty() {
        overview(&mut page, comparison);
    }
    for report in &comparison.configurations {
        section(&mut page, report);
    }
    page.push_str("</main></html>\n");
    page
}

/// Appends the scores of all configurations, and the comparison of each two.
fn overview(page: &mut String, comparison: &Comparison) {
    open_table(page, "Configurations");
    page.push_str("<tr><th>configuration<th class=n>score<th class=n>95 % interval");
    if comparison.configurations.iter().any(|report| report.spent.is_some()) {
        page.push_str(
            "<th class=n>calls<th class=n>tokens<th class=n>US dollars<th class=n>median s<th class=n>95 % s",
        );
    }
    for report in &comparison.configurations {
        let _ = write!(
            page,
            "<tr><td>{}<td class=n>{}<td class=n>{}",
            html_text(report.name.as_deref().unwrap_or_default()),
            percent(report.score),
            report.interval.map(range).unwrap_or_default()
        );
        if let Some(spent) = report.spent {
            let dollars = spent.micro_usd.map(|amount| format!("{:.4}", amount as f64 / 1e6));
            let _ = write!(
                page,
                "<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{:.1}<td class=n>{:.1}",
                spent.calls,
                spent.input_tokens + spent.output_tokens,
                dollars.unwrap_or_else(|| "unknown".to_owned()),
                spent.median_millis as f64 / 1e3,
                spent.p95_millis as f64 / 1e3,
            );
        }
    }
    page.push_str(END_OF_TABLE);
    for pair in &comparison.pairs {
        difference(page, &format!("{} beside {}", pair.other, pair.one), &pair.comparison);
    }
}

fn difference(page: &mut String, title: &str, baseline: &Baseline) {
    let _ = write!(
        page,
        "<p>{} ({}): <b>{:+.2}</b> points{}; better in {}, worse in {}, equal in {} document{}; probability of being better {}.</p>",
        html_text(title),
        percent(baseline.score),
        100.0 * baseline.difference,
        range(baseline.interval),
        baseline.better,
        baseline.worse,
        baseline.equal,
        if baseline.equal == 1 { "" } else { "s" },
        percent(baseline.probability_better),
    );
}

fn section(page: &mut String, report: &Report) {
    if let Some(name) = &report.name {
        let _ = write!(page, "<h2>{}</h2>", html_text(name));
    }
    let _ = write!(
        page,
        "<p>Score <b>{}</b>{} of {} document{}",
        percent(report.score),
        report.interval.map(range).unwrap_or_default(),
        report.rows.len(),
        if report.rows.len() == 1 { "" } else { "s" },
    );
    if report.unanswered > 0 {
        let _ = write!(page, ", {} without an answer", report.unanswered);
    }
    page.push_str("</p>");
    if let Some(baseline) = &report.baseline {
        difference(page, "Difference from the baseline", baseline);
    }
    for gate in &report.gates {
        let (class, word) = if gate.ok { ("", "passed") } else { ("wrong", "failed") };
        let _ = write!(
            page,
            "<p class=\"{class}\">Gate <code>{}</code> {word}: {}</p>",
            html_text(&gate.gate),
            percent(gate.value)
        );
    }
    for note in &report.notes {
        let _ = write!(page, "<p>Note: {}</p>", html_text(note));
    }
    let level = if report.name.is_some() { 3 } else { 2 };
    let _ = write!(page, "<h{level}>Paths</h{level}>");
    open_table(page, "Paths");
    page.push_str(
        "<tr><th>path<th class=n>accuracy<th class=n>95 % interval<th class=n>right<th class=n>wrong\
         <th class=n>invented<th class=n>missing<th class=n>not stated",
    );
    let mut paths: Vec<_> = report.paths.iter().collect();
    paths.sort_by(|one, other| one.accuracy.unwrap_or(2.0).total_cmp(&other.accuracy.unwrap_or(2.0)));
    for path in paths {
        let tally = path.tally;
        let _ = write!(
            page,
            "<tr><td><code>{}</code><td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}",
            html_text(&path.path),
            path.accuracy.map(percent).unwrap_or_default(),
            path.interval.map(range).unwrap_or_default(),
            tally.right,
            tally.wrong,
            tally.invented,
            tally.missing,
            tally.not_stated,
        );
    }
    let _ = write!(page, "{END_OF_TABLE}<h{level}>Worst documents</h{level}>");
    for row in &report.worst {
        let id = row.id.as_str().map_or_else(|| row.id.to_string(), str::to_owned);
        let _ = write!(
            page,
            "<details><summary>{} <code>{}</code></summary>",
            percent(row.score),
            html_text(&id)
        );
        open_table(page, "Differences");
        page.push_str("<tr><th>path<th>grade<th>gold<th>answer");
        for difference in &row.differences {
            let class = match difference.grade {
                Grade::Missing => "missing",
                Grade::Invented => "invented",
                _ => "wrong",
            };
            let _ = write!(
                page,
                "<tr><td><code>{}</code><td class={class}>{class}<td>{}<td>{}",
                html_text(&difference.path),
                value(difference.expected.as_ref()),
                value(difference.answer.as_ref()),
            );
        }
        let _ = write!(page, "{END_OF_TABLE}</details>");
    }
}

/// Begins a table that scrolls by itself on a narrow screen.
fn open_table(page: &mut String, label: &str) {
    let _ = write!(page, "<div class=wide tabindex=0 role=group aria-label=\"{label}\"><table>");
}

const END_OF_TABLE: &str = "</table></div>";

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn range([low, high]: [f64; 2]) -> String {
    format!(" ({:.2} to {:.2})", 100.0 * low, 100.0 * high)
}

fn value(value: Option<&Value>) -> String {
    value.map_or_else(|| "<i>absent</i>".to_owned(), html_value)
}
