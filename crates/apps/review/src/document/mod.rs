//! Reads YAML and TOML files that people write, with the location of each mistake.
//!
//! Both formats are converted to JSON, with the location of each value. The JSON Schema of the Rust type finds all
//! mistakes at once.
//!
//! ```
//! use formwork_review::document::{Document, Format};
//!
//! #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Port {
//!     number: u16,
//! }
//!
//! let file = Document::parse("port.yaml", "numbr: 80\n", Format::Yaml)?;
//! let error = file.read::<Port>().unwrap_err();
//! assert_eq!(error.findings()[0].to_string(), "port.yaml:1:1: there is no `numbr` here: did you mean `number`?");
//! # Ok::<(), formwork_review::document::DocumentError>(())
//! ```

mod error;
mod toml;
mod words;
mod yaml;

use std::collections::HashMap;
use std::path::Path;

use formwork_core::{Context, JsonPath, LintFinding, Report, Severity, Validator as _};
use formwork_json::{Rounded, rounded};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use error::{DocumentError, Finding};
pub use formwork_schema::nearest;

/// The maximum size of a document in bytes (1 MiB).
pub const MAX_BYTES: usize = 1024 * 1024;

/// The format of a document.
///
/// ```
/// use formwork_review::document::Format;
/// use std::path::Path;
///
/// assert_eq!(Format::of(Path::new("skill.toml")), Format::Toml);
/// assert_eq!(Format::of(Path::new("rubric.json")), Format::Yaml);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// YAML 1.2, which includes JSON.
    Yaml,
    /// TOML 1.0.
    Toml,
}

impl Format {
    /// Returns the format for a file name: TOML for `.toml`, YAML for any other.
    pub fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Self::Toml,
            _ => Self::Yaml,
        }
    }
}

/// A parsed document, with the location of each value.
///
/// ```
/// use formwork_core::JsonPath;
/// use formwork_review::document::{Document, Format};
///
/// let document = Document::parse("shop.yaml", "name: Corner\nitems: 3\n", Format::Yaml)?;
/// assert_eq!(document.value()["items"], 3);
/// let error = document.error(JsonPath::root().key("items"), "expected at most 2 items");
/// assert_eq!(error.to_string(), "shop.yaml:2:8: expected at most 2 items");
/// # Ok::<(), formwork_review::document::DocumentError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Document {
    file: String,
    text: String,
    value: Value,
    places: Vec<Place>,
    rounded: Vec<Rounded>,
}

/// The location of a value, in bytes of the text.
#[derive(Debug, Clone)]
struct Place {
    path: JsonPath,
    key: Option<usize>,
    value: usize,
}

/// Returns the fractions that the parser changed, and refuses other numbers that it changed.
fn exact(text: &str, value: &Value, places: &[Place]) -> Result<Vec<Rounded>, (usize, String)> {
    let mut fractions = Vec::new();
    for Place { path, value: at, .. } in places {
        if !path.get(value).is_some_and(Value::is_f64) {
            continue;
        }
        let rest = text.get(*at..).unwrap_or_default();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.' | '_'));
        let number = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        let number = number.trim_start_matches('+').replace('_', "");
        for number in rounded(&number) {
            if !number.is_tolerable() {
                return Err((*at, number.detail()));
            }
            fractions.push(Rounded { path: path.clone(), text: number.text });
        }
    }
    Ok(fractions)
}

impl Document {
    /// Parses a text; `file` is its name in messages.
    ///
    /// # Errors
    /// [`DocumentError`] with the location, if the text is not valid YAML or TOML, a key is duplicated, the text is
    /// longer than [`MAX_BYTES`], its aliases expand to an excessive size, or an integer cannot be kept exactly.
    pub fn parse(file: &str, text: &str, format: Format) -> Result<Self, DocumentError> {
        if text.len() > MAX_BYTES {
            let message = format!("the file has {} bytes: at most {MAX_BYTES} are read", text.len());
            return Err(DocumentError::new(vec![Finding::new(file, text, 0, message)]));
        }
        let parsed = match format {
            Format::Yaml => yaml::parse(text),
            Format::Toml => toml::parse(text),
        };
        let (value, places, rounded) = parsed
            .and_then(|(value, places)| Ok((exact(text, &value, &places)?, value, places)))
            .map(|(rounded, value, places)| (value, places, rounded))
            .map_err(|(at, message)| DocumentError::new(vec![Finding::new(file, text, at, message)]))?;
        Ok(Self { file: file.to_owned(), text: text.to_owned(), value, places, rounded })
    }

    /// Returns the document's name in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the whole document as JSON.
    pub const fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the fractions that were rounded to a double, each with its path and its text.
    ///
    /// ```
    /// use formwork_review::document::{Document, Format};
    ///
    /// let document = Document::parse("a.yaml", "limits: [0.5, 0.12345678901234567891]\n", Format::Yaml)?;
    /// assert_eq!(document.rounded()[0].path.to_string(), "$.limits[1]");
    /// # Ok::<(), formwork_review::document::DocumentError>(())
    /// ```
    pub fn rounded(&self) -> &[Rounded] {
        &self.rounded
    }

    /// Deserializes the document as a type.
    ///
    /// # Errors
    /// [`DocumentError`] with all mistakes: an unknown key (with the nearest known one), a missing key, or a value that
    /// does not satisfy the schema of the type.
    pub fn read<T: JsonSchema + DeserializeOwned>(&self) -> Result<T, DocumentError> {
        let schema =
            SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<T>();
        let schema = schema.to_value();
        let compiled = formwork_schema::compile(&schema)
            .map_err(|error| self.error(JsonPath::root(), error.to_string()))?;
        let mut report = Report::default();
        compiled.validate(&self.value, &Context::EMPTY, &mut report);
        let mut findings: Vec<Finding> =
            report.violations().iter().map(|violation| words::finding(self, &compiled, violation)).collect();
        if findings.is_empty() {
            match serde_path_to_error::deserialize(&self.value) {
                Ok(read) => return Ok(read),
                Err(error) => {
                    let path = words::path(error.path());
                    findings.push(self.finding(&path, error.inner().to_string()));
                }
            }
        }
        findings.sort_by_key(|finding| (finding.line, finding.column));
        Err(DocumentError::new(findings))
    }

    /// Returns the mistakes that a linter finds in the JSON Schema at a path, for example misspelled keywords. A schema that allows
    /// every value is no mistake here.
    ///
    /// ```
    /// use formwork_core::JsonPath;
    /// use formwork_review::document::{Document, Format};
    ///
    /// let document = Document::parse("a.yaml", "schema: {maxLenght: 4}\n", Format::Yaml)?;
    /// let findings = document.lint(&JsonPath::root().key("schema"));
    /// assert_eq!(findings[0].to_string(), "a.yaml:1:10: unknown keyword: did you mean `maxLength`?");
    /// # Ok::<(), formwork_review::document::DocumentError>(())
    /// ```
    pub fn lint(&self, path: &JsonPath) -> Vec<Finding> {
        let found = path.get(&self.value).map(formwork_schema::lint).unwrap_or_default();
        let is_mistake = |one: &LintFinding| !one.pointer.is_empty() || one.verdict == Severity::Error;
        let root = path.pointer();
        let found: Vec<_> = found.into_iter().filter(is_mistake).collect();
        let mut places = HashMap::new();
        if !found.is_empty() {
            places.extend(self.places.iter().map(|place| (place.path.pointer(), place)));
        }
        let finding = |LintFinding { pointer, words, .. }| {
            let place = places.get(&(root.clone() + &pointer)).copied().or_else(|| self.place(path));
            let at = place.map_or(0, |place| place.key.unwrap_or(place.value));
            Finding::new(&self.file, &self.text, at, words)
        };
        found.into_iter().map(finding).collect()
    }

    /// Returns an error for the value at a path.
    pub fn error(&self, path: JsonPath, message: impl Into<String>) -> DocumentError {
        DocumentError::new(vec![self.finding(&path, message)])
    }

    /// Returns a single mistake of the value at a path, to be collected with others for [`DocumentError::new`].
    pub fn finding(&self, path: &JsonPath, message: impl Into<String>) -> Finding {
        Finding::new(&self.file, &self.text, self.place(path).map_or(0, |place| place.value), message)
    }

    /// Returns a mistake of a member's name instead of its value.
    fn finding_at_key(&self, path: &JsonPath, message: impl Into<String>) -> Finding {
        let at = self.place(path).map_or(0, |place| place.key.unwrap_or(place.value));
        Finding::new(&self.file, &self.text, at, message)
    }

    /// Returns the location of the value at a path, or of its nearest ancestor in the document.
    fn place(&self, path: &JsonPath) -> Option<&Place> {
        let exact = self.places.iter().find(|place| place.path == *path);
        exact.or_else(|| self.place(&path.parent()?))
    }
}

/// The result of a parser: the value and all locations, or the byte of the mistake and the message.
type Parsed = Result<(Value, Vec<Place>), (usize, String)>;

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Shop {
        name: String,
        items: Vec<Item>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Item {
        id: String,
        #[serde(default)]
        price: u32,
    }

    fn says(format: Format, text: &str) -> Vec<String> {
        let read = Document::parse("f", text, format).and_then(|document| document.read::<Shop>());
        read.unwrap_err().findings().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn yaml_and_toml_give_the_same_value() {
        let yaml = "name: ä\nitems:\n  - {id: no, price: 3}\n";
        let toml = "name = \"ä\"\n[[items]]\nid = \"no\"\nprice = 3\n";
        let value = |text, format| Document::parse("f", text, format).unwrap().value().clone();
        assert_eq!(value(yaml, Format::Yaml), value(toml, Format::Toml));
        assert_eq!(value(yaml, Format::Yaml)["items"][0]["id"], "no");
    }

    #[test]
    fn everything_that_is_wrong_has_its_place() {
        let yaml = "name: 7\nitems:\n  - idd: a\n    price: cheap\n";
        assert_eq!(
            says(Format::Yaml, yaml),
            [
                "f:1:7: Type mismatch at $.name: expected string, found number",
                "f:3:5: there is no `idd` here: did you mean `id`?",
                "f:3:5: required field `id` is missing",
                "f:4:12: Type mismatch at $.items[0].price: expected integer, found string",
            ]
        );
        let toml = "name = 7\n[[items]]\nidd = \"ä\"\n";
        assert_eq!(
            says(Format::Toml, toml),
            [
                "f:1:8: Type mismatch at $.name: expected string, found number",
                "f:2:1: required field `id` is missing",
                "f:3:1: there is no `idd` here: did you mean `id`?",
            ]
        );
    }

    #[test]
    fn columns_are_counted_in_characters() {
        let yaml = "items: []\n\"nämé\": {a: ä, b: é}\n";
        let found = says(Format::Yaml, yaml);
        assert!(
            found.contains(&"f:2:1: there is no `nämé` here; there are name, items".to_owned()),
            "{found:?}"
        );
    }

    #[test]
    fn what_cannot_be_parsed_has_its_place() {
        for (format, text, starts, has) in [
            (
                Format::Yaml,
                "name: a\nname: b\n",
                "f:2:1: ",
                "duplicate mapping key `name` is not allowed here",
            ),
            (Format::Yaml, "name: a\n\titems: 1\n", "f:1:7: ", "found a tab: indent with spaces"),
            (Format::Yaml, "name: a: b\n", "f:1:8: ", "put a text with `: ` between quotation marks"),
            (
                Format::Yaml,
                "name: a\n  items: 1\n",
                "f:2:8: ",
                "begin the keys of one mapping in the same column",
            ),
            (Format::Yaml, "name: \"a\nitems: b\n", "f:2:1: ", "is a quotation mark missing"),
            (Format::Yaml, "name: 'a\n", "f:", "is a quotation mark missing"),
            (Format::Yaml, "name: [a\nitems: x\n", "f:", ""),
            (Format::Yaml, "", "f:1:1: ", ""),
            (Format::Yaml, "name: .inf\n", "f:1:7: ", ".inf"),
            (Format::Yaml, "a: 1\n---\nb: 2\n", "f:", ""),
            (Format::Toml, "name = \n", "f:1:8: ", ""),
            (Format::Toml, "name = 1\nname = 2\n", "f:2:1: ", "duplicate"),
            (Format::Toml, "when = 2026-01-01\n", "f:1:8: ", "date"),
            (
                Format::Yaml,
                "a: [1.5, 123456789012345678901]\n",
                "f:1:10: ",
                "the integer 123456789012345678901",
            ),
            (
                Format::Yaml,
                "a: &n -18446744073709551616\nb: *n\n",
                "f:1:",
                "the integer -18446744073709551616",
            ),
            (
                Format::Toml,
                "a = 1.5\nb = 12_345_678_901_234_567.0\n",
                "f:2:5: ",
                "the integer 12345678901234567.0",
            ),
        ] {
            let found = says(format, text);
            assert!(found[0].starts_with(starts) && found[0].contains(has), "{text:?}: {found:?}");
            assert!(!found[0].contains("at line"), "{found:?}");
        }
    }

    #[test]
    fn the_place_is_shown_with_a_caret() {
        let error =
            Document::parse("f", "name: a\nitems: many\n", Format::Yaml).unwrap().read::<Shop>().unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "f:2:8: Type mismatch at $.items: expected array, found string\n  |\n2 | items: many\n  |        ^^^^"
        );
    }

    #[test]
    fn bombs_are_refused_before_they_are_expanded() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..12 {
            let refs = vec![format!("*a{}", n - 1); 9].join(", ");
            bomb.push_str(&format!("a{n}: &a{n} [{refs}]\n"));
        }
        let deep = format!("a: {}{}", "[".repeat(5000), "]".repeat(5000));
        let block: String = (0..500).map(|n| format!("{}- \n", " ".repeat(n * 2))).collect();
        let wide = format!("a: [{}]", "1,".repeat(400_000));
        for text in [bomb, deep, block, wide, "x".repeat(MAX_BYTES + 1)] {
            // Expanding the aliases of the first one would give 9^12 strings.
            let found = says(Format::Yaml, &text);
            assert!(found.len() == 1 && found[0].len() < 400, "{found:?}");
        }
        let deep = format!("a = {}{}", "[".repeat(5000), "]".repeat(5000));
        assert_eq!(says(Format::Toml, &deep).len(), 1);
    }
}
