//! Options in headers, beside the protocol.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::CACHE_CONTROL;
use formwork_core::{Absent, Coerce};
use formwork_schema::nearest;

use crate::engine::Bounds;
use crate::problem::Problem;

/// The options of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// The name of a contract of the folder.
    pub(crate) contract: Option<String>,
    pub(crate) bounds: Bounds,
    /// The members of the schema that a text may lack, besides those that the schema marks itself.
    pub(crate) absent: Option<Absent>,
    pub(crate) coerce: Option<Coerce>,
    /// Whether the response has the places of the values and the confidence in them.
    pub(crate) evidence: bool,
    /// Whether the first attempt is sent as it comes.
    pub(crate) is_eager: bool,
    /// Whether the answer is a new one, and not the cache's: `cache-control: no-cache`.
    pub(crate) is_new: bool,
    /// The caller's labels.
    pub(crate) tags: Vec<String>,
    pub(crate) user: Option<String>,
}

/// The most tags, and the most characters of each and of a user's name.
const MAX_TAGS: usize = 16;
const MAX_NAME: usize = 128;

const PREFIX: &str = "x-formwork-";

/// The names of the headers that are options.
const OPTIONS: [&str; 9] = [
    "x-formwork-contract",
    "x-formwork-budget",
    "x-formwork-deadline",
    "x-formwork-stream",
    "x-formwork-absent",
    "x-formwork-coerce",
    "x-formwork-evidence",
    "x-formwork-tags",
    "x-formwork-user",
];

impl Options {
    /// Reads the headers `x-formwork-contract`, `-budget` (US dollars), `-deadline` (seconds), `-stream` (`eager`), `-absent` (`all`, or
    /// paths with commas between), `-coerce`, `-evidence` (`on`), `-tags` (names with commas between) and `-user`.
    ///
    /// # Errors
    /// [`Problem`] that names the header.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut options = Self { is_new: is_new(headers), ..Self::default() };
        for name in headers.keys().filter(|name| name.as_str().starts_with(PREFIX)) {
            let (Some(value), name) = (headers.get(name), name.as_str()) else { continue };
            // A header of another meaning may have any bytes.
            let text = value.to_str().map(str::trim);
            match text {
                _ if !OPTIONS.contains(&name) => is_other(name)?,
                Ok("") => {}
                Ok(text) => options.read(name, text)?,
                Err(_) => return Err(wrong(name, "visible ASCII characters")),
            }
        }
        Ok(options)
    }

    /// Returns whether the answer has to be that of a run, because only its value has what is asked for.
    pub(crate) const fn needs_run(&self) -> bool {
        self.absent.is_some() || self.coerce.is_some() || self.evidence || self.is_eager
    }

    /// Returns the names of the headers that say how a contract is asked for, and have no effect without one.
    pub(crate) fn of_contracts(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("x-formwork-absent", self.absent.is_some()),
            ("x-formwork-coerce", self.coerce.is_some()),
            ("x-formwork-evidence", self.evidence),
        ];
        all.into_iter().filter_map(|(name, is_set)| is_set.then_some(name))
    }

    /// Reads a header, which is an option.
    fn read(&mut self, header: &str, text: &str) -> Result<(), Problem> {
        let number = |what: &str, max: f64| {
            let number = text.trim_start_matches('$').parse().ok();
            number.filter(|number: &f64| *number > 0.0 && *number <= max).ok_or_else(|| wrong(header, what))
        };
        let name = |name: &str| match name.chars().count() {
            1..=MAX_NAME => Ok(name.to_owned()),
            _ => Err(wrong(header, "names of 1 to 128 characters")),
        };
        match header {
            "x-formwork-contract" => self.contract = Some(text.to_owned()),
            "x-formwork-budget" => {
                let usd = number("US dollars, such as 0.05", 1e6)?;
                self.bounds.budget = Some((usd * 1e6).round() as u64);
            }
            "x-formwork-deadline" => {
                let seconds = number("seconds, such as 30", 86_400.0)?;
                self.bounds.deadline = Some(Duration::from_secs_f64(seconds));
            }
            "x-formwork-stream" => {
                self.is_eager = match text {
                    "certain" => false,
                    "eager" => true,
                    _ => return Err(wrong(header, "`certain` or `eager`")),
                }
            }
            "x-formwork-absent" => self.absent = Some(absent(text)?),
            "x-formwork-coerce" => {
                self.coerce = Some(text.parse().map_err(|_| wrong(header, COERCE))?);
            }
            "x-formwork-evidence" => {
                self.evidence = match text {
                    "off" => false,
                    "on" => true,
                    _ => return Err(wrong(header, "`on` or `off`")),
                }
            }
            "x-formwork-tags" => {
                let tags = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
                self.tags = tags.map(name).collect::<Result<_, _>>()?;
                if self.tags.len() > MAX_TAGS {
                    return Err(wrong(header, "at most 16 names"));
                }
            }
            "x-formwork-user" => self.user = Some(name(text)?),
            _ => {}
        }
        Ok(())
    }
}

/// Refuses a header that nearly has the name of an option.
fn is_other(name: &str) -> Result<(), Problem> {
    let end = |name: &'static str| name.trim_start_matches(PREFIX);
    let Some(meant) = nearest(name.trim_start_matches(PREFIX), OPTIONS.into_iter().map(end)) else {
        return Ok(());
    };
    let message = format!("there is no header `{name}`: did you mean `{PREFIX}{meant}`?");
    Err(Problem::invalid(name, message))
}

/// Returns whether the client does not take an answer of a cache.
fn is_new(headers: &HeaderMap) -> bool {
    let texts = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).any(|word| {
        let word = word.trim();
        word.eq_ignore_ascii_case("no-cache") || word.eq_ignore_ascii_case("no-store")
    })
}

/// The values of `x-formwork-coerce`.
const COERCE: &str =
    "`strict`, `ask`, `fix`, `drop`, `default` or `guess`, or a path before it: `$.note=drop`";

/// Reads `all`, or paths with commas between.
fn absent(text: &str) -> Result<Absent, Problem> {
    if text == "all" {
        return Ok(Absent::All);
    }
    let paths = text.split(',').map(|path| path.trim().parse()).collect::<Result<_, _>>();
    paths
        .map(Absent::Paths)
        .map_err(|_| wrong("x-formwork-absent", "`all`, or paths such as `$.birth, $.items[*].note`"))
}

fn wrong(name: &str, what: &str) -> Problem {
    Problem::invalid(name, format!("the header `{name}`: expected {what}"))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn only_an_option_is_refused_for_its_bytes() {
        let of = |name: &str| {
            let value = HeaderValue::from_bytes("Müller".as_bytes()).unwrap();
            Options::of(&HeaderMap::from_iter([(HeaderName::try_from(name).unwrap(), value)]))
        };
        assert!(OPTIONS.iter().all(|name| of(name).is_err()));
        assert!(of("x-formwork-note").is_ok());
        let of = |name: &str| {
            Options::of(&HeaderMap::from_iter([(
                HeaderName::try_from(name).unwrap(),
                HeaderValue::from_static("on"),
            )]))
        };
        let error = of("x-formwork-evidance").unwrap_err();
        assert!(error.message.ends_with("did you mean `x-formwork-evidence`?"), "{error:?}");
        // Clients may send back what a response had.
        for name in ["run", "calls", "cache", "ignored", "warnings", "estimated"] {
            assert!(of(&format!("x-formwork-{name}")).is_ok(), "{name}");
        }
    }
}
