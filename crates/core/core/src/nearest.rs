/// Returns the name that an unknown word most likely means; `None` if no name is similar (Jaro-Winkler similarity of at
/// least 0.8).
///
/// ```
/// use formwork_core::nearest;
///
/// assert_eq!(nearest("temprature", ["prompt", "temperature"]), Some("temperature"));
/// assert_eq!(nearest("colour", ["prompt", "temperature"]), None);
/// ```
pub fn nearest<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    /// The minimum similarity, from 0 to 1: typing errors are above it, different words far below.
    const ALIKE: f64 = 0.8;

    names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&word.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

/// Returns the name that a word most likely misspells, where the word may also be correct: the [`nearest`] of the names
/// that differ in at most `max` letters and in at most a third of the word. A word of more than 64 letters is not
/// compared.
///
/// ```
/// use formwork_core::misspelled;
///
/// assert_eq!(misspelled("requird", ["title", "required"], 2), Some("required"));
/// assert_eq!(misspelled("minimally", ["minimum"], 2), None);
/// ```
pub fn misspelled<'n>(word: &str, names: impl IntoIterator<Item = &'n str>, max: usize) -> Option<&'n str> {
    /// The time of a comparison grows with the square of the length.
    const MAX_LETTERS: usize = 64;

    let letters = word.chars().take(MAX_LETTERS + 1).count();
    let max = (letters / 3).min(max);
    let is_slip = |name: &&str| {
        letters.abs_diff(name.chars().take(MAX_LETTERS + 3).count()) <= max
            && strsim::osa_distance(word, name) <= max
    };
    let names = names.into_iter().filter(is_slip);
    if letters > MAX_LETTERS || max == 0 { None } else { nearest(word, names) }
}

/// Returns an error message for an unknown word: `message`, and the most similar of the known names, or all of them.
///
/// ```
/// use formwork_core::advised;
///
/// let names = ["strict", "clean"];
/// assert_eq!(advised("unknown level `clena`", "clena", &names), "unknown level `clena`: did you mean `clean`?");
/// ```
pub fn advised(message: &str, word: &str, names: &[&str]) -> String {
    match nearest(word, names.iter().copied()) {
        Some(meant) => format!("{message}: did you mean `{meant}`?"),
        None => format!("{message}; there are {}", names.join(", ")),
    }
}
