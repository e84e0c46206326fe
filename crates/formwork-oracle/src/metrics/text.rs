//! The text format of Prometheus, version 0.0.4.

use std::fmt::Write as _;

use super::histogram::Histogram;

/// A page of metrics.
#[derive(Debug, Default)]
pub(super) struct Page(String);

/// Names and values of labels.
pub(super) type Labels<'l> = [(&'l str, &'l str)];

impl Page {
    /// Starts a family; its samples follow.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(super) fn sample(&mut self, name: &str, labels: &Labels<'_>, value: f64) {
        self.0.push_str(name);
        for (place, (label, value)) in labels.iter().enumerate() {
            _ = write!(self.0, "{}{label}=\"", if place == 0 { '{' } else { ',' });
            escape(&mut self.0, value);
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        _ = writeln!(self.0, " {}", number(value));
    }

    pub(super) fn histogram(&mut self, name: &str, labels: &Labels<'_>, histogram: &Histogram) {
        let bucket = format!("{name}_bucket");
        for (bound, count) in histogram.cumulative() {
            let bound = number(bound);
            self.sample(&bucket, &[labels, &[("le", bound.as_str())]].concat(), count as f64);
        }
        self.sample(&format!("{name}_sum"), labels, histogram.sum());
        self.sample(&format!("{name}_count"), labels, histogram.count() as f64);
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

fn escape(out: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            letter => out.push(letter),
        }
    }
}

fn number(value: f64) -> String {
    if value == f64::INFINITY { "+Inf".to_owned() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_cannot_end_their_line() {
        let mut page = Page::default();
        page.sample("a_total", &[("x", "1\"} 5\nb_total\\")], 2.0);
        assert_eq!(page.finish(), "a_total{x=\"1\\\"} 5\\nb_total\\\\\"} 2\n");
    }

    #[test]
    fn a_histogram_is_cumulative_and_ends_in_infinity() {
        let mut histogram = Histogram::new(&[0.5, 2.0]);
        histogram.add(1.0);
        let mut page = Page::default();
        page.histogram("t", &[], &histogram);
        assert_eq!(
            page.finish(),
            "t_bucket{le=\"0.5\"} 0\nt_bucket{le=\"2\"} 1\nt_bucket{le=\"+Inf\"} 1\nt_sum 1\nt_count 1\n"
        );
    }
}
