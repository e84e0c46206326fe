//! Plots as SVG: axes, bars and points. They run no script, load nothing, and escape every text.

use std::fmt::Write as _;

/// Returns a text escaped for HTML and SVG, including attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

/// A plot of 560 by 300 units; it scales.
pub(super) struct Svg(String);

pub(super) const WIDTH: f64 = 560.0;
pub(super) const HEIGHT: f64 = 300.0;

impl Svg {
    /// Creates a plot; `label` is the text alternative for screen readers.
    pub(super) fn new(label: &str) -> Self {
        let label = escape(label);
        Self(format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{label}\">\n"))
    }

    /// Draws a rectangle with `title` as its tooltip.
    pub(super) fn bar(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), title: &str) {
        let title = escape(title);
        _ = writeln!(
            self.0,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\">\
             <title>{title}</title></rect>"
        );
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        _ = writeln!(
            self.0,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    pub(super) fn dot(&mut self, class: &str, (x, y): (f64, f64), title: &str) {
        let title = escape(title);
        _ = writeln!(
            self.0,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{title}</title></circle>"
        );
    }

    /// Draws a text; `anchor` is `start`, `middle` or `end`.
    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let text = escape(text);
        _ = writeln!(self.0, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
    }

    /// Draws a vertical text along the left edge.
    pub(super) fn upright(&mut self, (x, y): (f64, f64), text: &str) {
        let text = escape(text);
        _ = writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 {x:.1} {y:.1})\">{text}</text>"
        );
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

/// Returns about five round steps for an axis from 0 to `most`.
pub(super) fn steps(most: u64) -> Vec<u64> {
    let powers = (0..).map(|power| 10_u64.saturating_pow(power));
    let mut round = powers.flat_map(|power| [1, 2, 5].map(|digit| power.saturating_mul(digit)));
    let step = round.find(|step| most / step < 5).unwrap_or(1);
    let last = most.div_ceil(step).max(1);
    (0..=last).map(|number| number.saturating_mul(step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_element() {
        assert_eq!(escape("<b a='x'>\"&\0"), "&lt;b a=&#39;x&#39;&gt;&quot;&amp;\u{fffd}");
    }

    #[test]
    fn steps_are_round_and_few_and_hold_all() {
        assert_eq!(steps(0), [0, 1]);
        assert_eq!(steps(3), [0, 1, 2, 3]);
        assert_eq!(steps(9), [0, 2, 4, 6, 8, 10]);
        assert_eq!(steps(200), [0, 50, 100, 150, 200]);
        for most in [1, 7, 48, 999, 12_345, 1 << 40] {
            let steps = steps(most);
            assert!(steps.len() <= 7 && steps.last() >= Some(&most), "{most}: {steps:?}");
        }
    }
}
