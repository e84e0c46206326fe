use formwork_json::{JsonPath, PathPattern};

use crate::{Severity, Violation};

/// Where validators put what they find.
///
/// It keeps at most [`Report::CAP`] violations unless it is [`uncapped`](Report::uncapped): an answer with more is rejected
/// as surely, and the model does not read on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    violations: Vec<Violation>,
    is_uncapped: bool,
    left_out: usize,
    soft: bool,
}

impl Extend<Violation> for Report {
    fn extend<I: IntoIterator<Item = Violation>>(&mut self, violations: I) {
        let mut violations = violations.into_iter();
        let room = self.room();
        let soft = self.soft;
        let kept = violations.by_ref().take(room);
        self.violations.extend(kept.map(|violation| if soft { violation.as_warning() } else { violation }));
        self.left_out += violations.count();
    }
}

impl Report {
    /// The most violations that are kept.
    pub const CAP: usize = 64;

    /// Returns a report that keeps every violation, for people who correct a document.
    pub fn uncapped() -> Self {
        Self { is_uncapped: true, ..Self::default() }
    }

    fn room(&self) -> usize {
        if self.is_uncapped { usize::MAX } else { Self::CAP.saturating_sub(self.violations.len()) }
    }

    /// Adds a violation.
    pub fn push(&mut self, violation: Violation) {
        if self.room() > 0 {
            self.violations.push(if self.soft { violation.as_warning() } else { violation });
        } else {
            self.left_out += 1;
        }
    }

    /// Returns the findings, in the order in which they were found.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// How many violations were found beyond the cap.
    pub const fn left_out(&self) -> usize {
        self.left_out
    }

    /// Whether nothing was found, warnings included.
    pub fn is_empty(&self) -> bool {
        self.violations.is_empty()
    }

    /// Whether something at or below one of these paths, or above it, is an error.
    pub(crate) fn touches(&self, paths: &[JsonPath]) -> bool {
        let errors = || self.violations.iter().filter(|violation| violation.severity == Severity::Error);
        if paths.is_empty() {
            return errors().next().is_some();
        }
        errors().any(|violation| {
            paths.iter().any(|path| violation.path.is_within(path) || path.is_within(&violation.path))
        })
    }

    /// Whether something at, below or above one of these places is an error.
    pub(crate) fn touches_any(&self, places: &[&PathPattern]) -> bool {
        let errors = self.violations.iter().filter(|violation| violation.severity == Severity::Error);
        errors.into_iter().any(|violation| places.iter().any(|place| place.touches(&violation.path)))
    }

    /// Makes what is pushed from now on a warning, or an error again.
    pub(crate) const fn set_soft(&mut self, soft: bool) {
        self.soft = soft;
    }

    pub(crate) fn into_violations(self) -> Vec<Violation> {
        self.violations
    }
}
