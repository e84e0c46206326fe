use formwork_json::{JsonPath, PathPattern};

use crate::{Severity, Violation};

/// The list to which validators add violations.
///
/// It keeps the first [`Report::CAP`] violations unless it is [`uncapped`](Report::uncapped): the answer is rejected
/// anyway, and a model does not benefit from a longer list.
///
/// ```
/// use formwork_core::{Report, Stage, Violation};
///
/// let mut report = Report::default();
/// for index in 0..Report::CAP + 36 {
///     let path = formwork_core::JsonPath::root().index(index);
///     report.push(Violation::new(path, "type", Stage::Schema).with_expected("string"));
/// }
/// assert_eq!((report.violations().len(), report.left_out()), (Report::CAP, 36));
/// ```
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
    /// The maximum number of violations that are kept.
    pub const CAP: usize = 512;

    /// Creates a report that keeps every violation, for people who correct a document.
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

    /// Adds the violations of the value at `at`, whose paths begin at this value. `left_out` is the number of its further
    /// violations, which were not kept.
    pub fn extend_at(
        &mut self,
        at: &JsonPath,
        violations: impl IntoIterator<Item = Violation>,
        left_out: usize,
    ) {
        self.extend(violations.into_iter().map(|violation| {
            let path = at.segments().iter().chain(violation.path.segments()).cloned().collect();
            Violation { path, ..violation }
        }));
        self.left_out += left_out;
    }

    /// Returns the violations in the order in which they were added.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Returns the number of violations beyond [`Report::CAP`].
    pub const fn left_out(&self) -> usize {
        self.left_out
    }

    /// Returns whether there are neither errors nor warnings.
    pub fn is_empty(&self) -> bool {
        self.violations.is_empty()
    }

    /// Returns whether there is an error at, below or above one of these paths.
    pub(crate) fn touches(&self, paths: &[JsonPath]) -> bool {
        let errors = || self.violations.iter().filter(|violation| violation.severity == Severity::Error);
        if paths.is_empty() {
            return errors().next().is_some();
        }
        errors().any(|violation| {
            paths.iter().any(|path| violation.path.is_within(path) || path.is_within(&violation.path))
        })
    }

    /// Returns whether there is an error at, below or above a path that one of these patterns matches.
    pub(crate) fn touches_any(&self, places: &[&PathPattern]) -> bool {
        let errors = self.violations.iter().filter(|violation| violation.severity == Severity::Error);
        errors.into_iter().any(|violation| places.iter().any(|place| place.touches(&violation.path)))
    }

    /// Sets whether violations that are added from now on are warnings.
    pub(crate) const fn set_soft(&mut self, soft: bool) {
        self.soft = soft;
    }

    pub(crate) fn into_violations(self) -> Vec<Violation> {
        self.violations
    }
}
