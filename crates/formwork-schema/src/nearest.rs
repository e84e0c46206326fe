/// Returns the word that was most likely meant, if one is like it at all.
///
/// ```
/// use formwork_schema::nearest;
///
/// assert_eq!(nearest("temprature", ["prompt", "temperature"]), Some("temperature"));
/// assert_eq!(nearest("colour", ["prompt", "temperature"]), None);
/// ```
pub fn nearest<'w>(word: &str, among: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    /// Between 0 and 1; a slip of the finger is above it, another word far below.
    const ALIKE: f64 = 0.8;

    among
        .into_iter()
        .map(|one| (strsim::jaro_winkler(&word.to_lowercase(), &one.to_lowercase()), one))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, one)| one)
}
