/// Which of these words was most likely meant: the nearest one that is at most two letters away, a third of the word at
/// most.
pub(super) fn nearest<'w>(word: &str, among: &[&'w str]) -> Option<&'w str> {
    let most = (word.chars().count() / 3).min(2);
    let away = among.iter().map(|other| (strsim::osa_distance(word, other), *other));
    away.filter(|(away, _)| *away <= most).min().map(|(_, other)| other)
}

/// Returns that the word is none of these, with the one that was most likely meant, or all of them.
pub(crate) fn none_of(what: &str, word: &str, among: &[&str]) -> String {
    match nearest(word, among) {
        Some(other) => format!("{what}: did you mean `{other}`?"),
        None => format!("{what}; there are {}", among.join(", ")),
    }
}
