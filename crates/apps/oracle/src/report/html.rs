//! The report as a self-contained HTML page.

use std::fmt::Write as _;

use super::svg::escape;
use super::table::{MODEL_IS_WORSE, cost};
use super::{Fit, Report, Target, plot};

/// The style sheet, with colours that colour-blind people can tell apart, for light and dark themes.
const STYLE: &str = include_str!("page.css");

pub(super) fn page(report: &Report, title: &str) -> String {
    let title = escape(title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    _ = writeln!(
        out,
        "<p>{} scores by {}, prompt {}.</p>",
        report.scores,
        names(&report.models),
        names(&report.prompts)
    );
    out.push_str(&targets(&report.targets));
    out.push_str("<div class=\"plots\">\n");
    figure(&mut out, "Latency", &plot::latency(report), &latency(report));
    figure(
        &mut out,
        "Attempts",
        &plot::attempts(report),
        "Answers that count, over all targets; a call that brought no answer is none.",
    );
    figure(&mut out, "Score against expected", &plot::expected(report), &expected(report));
    figure(&mut out, "Reasons of retries", &plot::reasons(report), &reasons(report));
    out.push_str("</div>\n");
    let cost = cost(report.micro_usd);
    _ = writeln!(
        out,
        "<p>{} tokens of prompts, {} of answers, {cost}. {} answers were not accepted.{} {} of {} reasonings of the model are \
         copied word for word from an example.</p>",
        report.input_tokens,
        report.output_tokens,
        report.rates.validation_failures,
        faults(report),
        report.copied_reasonings,
        report.model_scores
    );
    out.push_str("</body>\n</html>\n");
    out
}

fn targets(targets: &[Target]) -> String {
    let mut out =
        "<table>\n<thead><tr><th>Success metric</th><th class=\"n\">Target</th><th class=\"n\">Measured</th>\
                   <th class=\"n\">n</th><th></th></tr></thead>\n<tbody>\n"
            .to_owned();
    for row in targets {
        let (Target { metric, target, measured_text, n, .. }, verdict) = (row, row.verdict());
        _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{n}</td>\
             <td class=\"{verdict}\">{verdict}</td></tr>",
            escape(metric),
            escape(target),
            escape(measured_text)
        );
    }
    out.push_str("</tbody>\n</table>\n");
    out
}

fn figure(out: &mut String, title: &str, plot: &str, caption: &str) {
    _ = writeln!(out, "<figure>\n<h2>{title}</h2>\n{plot}<figcaption>{caption}</figcaption>\n</figure>");
}

fn latency(report: &Report) -> String {
    let Some(spread) = report.latency_ms else { return "There are no scores.".to_owned() };
    let [_, p50, p95, p99, max] = spread.seconds();
    format!("p50 {p50:.2} s, p95 {p95:.2} s, p99 {p99:.2} s, most {max:.2} s.")
}

fn expected(report: &Report) -> String {
    let Some(expected) = &report.expected else {
        return "No wallet says what is expected of it.".to_owned();
    };
    let mut out = String::new();
    for (name, fit) in [("The model", expected.model), ("Counting, the fallback", expected.fallback)] {
        if let Some(fit) = fit {
            let (line, Fit { n, within, mean_error, .. }) = (fit.line(), fit);
            _ = write!(
                out,
                "{name}: {within} of {n} within the band, off its middle by {mean_error:.0} points on average, \
                 correlation {line}. "
            );
        }
    }
    if expected.is_model_worse() {
        out.push_str(MODEL_IS_WORSE);
        out.push(' ');
    }
    out.push_str("Blue: the model; orange: the fallback where it gave the score.");
    out
}

fn reasons(report: &Report) -> String {
    let count: u64 = report.reasons.iter().map(|reason| reason.count).sum();
    if count == 0 {
        return "Every answer was accepted.".to_owned();
    }
    format!(
        "{count} violations of {} rejected answers, by class and place.",
        report.rates.validation_failures
    )
}

fn faults(report: &Report) -> String {
    if report.faults.is_empty() {
        return String::new();
    }
    format!(" Calls without an answer: {}.", names(&report.faults))
}

/// Returns the counts as in `a (3), b (1)`, at most eight of them.
fn names(counts: &std::collections::BTreeMap<String, u64>) -> String {
    let mut names: Vec<String> =
        counts.iter().take(8).map(|(name, count)| format!("{} ({count})", escape(name))).collect();
    if counts.len() > names.len() {
        names.push(format!("{} more", counts.len() - names.len()));
    }
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
