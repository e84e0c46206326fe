//! Common parts of configuration sections.

use serde::{Deserialize, Deserializer};

/// Reads null as the empty string, for the name of the variable with an API key: no key is sent. A missing field has the default
/// of its section instead.
///
/// ```
/// #[derive(serde::Deserialize)]
/// struct Section {
///     #[serde(default, deserialize_with = "formwork_wire::null_is_empty")]
///     api_key_env: Option<String>,
/// }
///
/// let section: Section = serde_json::from_str(r#"{"api_key_env": null}"#)?;
/// assert_eq!(section.api_key_env.as_deref(), Some(""));
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// An error of the deserializer if the value is neither a string nor null.
pub fn null_is_empty<'de, D: Deserializer<'de>, T: From<String>>(deserializer: D) -> Result<T, D::Error> {
    Option::<String>::deserialize(deserializer).map(|name| T::from(name.unwrap_or_default()))
}

/// Returns `true`, the default of fields such as `stream`.
///
/// ```
/// #[derive(serde::Deserialize)]
/// struct Section {
///     #[serde(default = "formwork_wire::yes")]
///     stream: bool,
/// }
///
/// let section: Section = serde_json::from_str("{}")?;
/// assert!(section.stream);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub const fn yes() -> bool {
    true
}
