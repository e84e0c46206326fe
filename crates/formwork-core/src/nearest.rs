/// Returns the name that was most likely meant by a word that is none of these names, if one is like it at all.
///
/// ```
/// use formwork_core::nearest;
///
/// assert_eq!(nearest("temprature", ["prompt", "temperature"]), Some("temperature"));
/// assert_eq!(nearest("colour", ["prompt", "temperature"]), None);
/// ```
pub fn nearest<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    /// Between 0 and 1; a slip of the finger is above it, another word far below.
    const ALIKE: f64 = 0.8;

    names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&word.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

/// Returns the name that a word most likely misspells, for words that may be right as they stand: the [`nearest`] of the
/// names that differ in at most `most` letters and in at most a third of the word. Words of more than 64 letters are not
/// compared.
///
/// ```
/// use formwork_core::misspelled;
///
/// assert_eq!(misspelled("requird", ["title", "required"], 2), Some("required"));
/// assert_eq!(misspelled("minimally", ["minimum"], 2), None);
/// ```
pub fn misspelled<'n>(word: &str, names: impl IntoIterator<Item = &'n str>, most: usize) -> Option<&'n str> {
    /// Comparing takes time with the square of the letters.
    const MAX_LETTERS: usize = 64;

    let letters = word.chars().take(MAX_LETTERS + 1).count();
    let most = (letters / 3).min(most);
    let is_slip = |name: &&str| {
        letters.abs_diff(name.chars().take(MAX_LETTERS + 3).count()) <= most
            && strsim::osa_distance(word, name) <= most
    };
    let names = names.into_iter().filter(is_slip);
    if letters > MAX_LETTERS || most == 0 { None } else { nearest(word, names) }
}

/// Returns a message about a word that is none of these names, with the one that was most likely meant, or with all of
/// them. `message` says what is wrong.
pub fn advised(message: &str, word: &str, names: &[&str]) -> String {
    match nearest(word, names.iter().copied()) {
        Some(meant) => format!("{message}: did you mean `{meant}`?"),
        None => format!("{message}; there are {}", names.join(", ")),
    }
}
