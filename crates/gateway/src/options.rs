//! Options in headers, beside the protocol.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::CACHE_CONTROL;
use formwork_core::{Absent, Coerce};

use crate::engine::Bounds;
use crate::problem::Problem;
use crate::trace;

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
    /// The caller's labels, and the trace that the request belongs to.
    pub(crate) tags: Vec<String>,
    pub(crate) user: Option<String>,
    /// The headers of the caller's trace.
    pub(crate) trace: HeaderMap,
}

/// The most tags, and the most characters of each and of a user's name.
const MAX_TAGS: usize = 16;
const MAX_NAME: usize = 128;

impl Options {
    /// Reads the headers `x-formwork-contract`, `-budget` (US dollars), `-deadline` (seconds), `-stream` (`eager`), `-absent` (`all`, or
    /// paths with commas between), `-evidence` (`on`), `-tags` (names with commas between) and `-user`.
    ///
    /// # Errors
    /// [`Problem`] that names the header.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        // Most requests have few of these, so the headers are searched once.
        let own: Vec<_> =
            headers.iter().filter(|(name, _)| name.as_str().starts_with("x-formwork-")).collect();
        let text = |name: &str| -> Result<Option<String>, Problem> {
            let Some((_, value)) = own.iter().find(|(own, _)| *own == name) else { return Ok(None) };
            let value = value.to_str().map_err(|_| wrong(name, "visible ASCII characters"))?.trim();
            Ok(Some(value.to_owned()).filter(|value| !value.is_empty()))
        };
        let number = |name: &str, what: &str, max: f64| -> Result<Option<f64>, Problem> {
            let Some(value) = text(name)? else { return Ok(None) };
            let number = value.trim_start_matches('$').parse().ok();
            let number = number.filter(|number: &f64| *number > 0.0 && *number <= max);
            number.map(Some).ok_or_else(|| wrong(name, what))
        };
        let is_eager = match text("x-formwork-stream")?.as_deref() {
            None | Some("certain") => false,
            Some("eager") => true,
            Some(_) => return Err(wrong("x-formwork-stream", "`certain` or `eager`")),
        };
        let evidence = match text("x-formwork-evidence")?.as_deref() {
            None | Some("off") => false,
            Some("on") => true,
            Some(_) => return Err(wrong("x-formwork-evidence", "`on` or `off`")),
        };
        let name = |header: &str, name: &str| match name.chars().count() {
            1..=MAX_NAME => Ok(name.to_owned()),
            _ => Err(wrong(header, "names of 1 to 128 characters")),
        };
        let tags = text("x-formwork-tags")?.unwrap_or_default();
        let tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty());
        let mut tags = tags.map(|tag| name("x-formwork-tags", tag)).collect::<Result<Vec<_>, _>>()?;
        if tags.len() > MAX_TAGS {
            return Err(wrong("x-formwork-tags", "at most 16 names"));
        }
        tags.extend(trace::id(headers).map(|id| format!("trace:{id}")));
        Ok(Self {
            contract: text("x-formwork-contract")?,
            bounds: Bounds {
                budget: number("x-formwork-budget", "US dollars, such as 0.05", 1e6)?
                    .map(|usd| (usd * 1e6).round() as u64),
                deadline: number("x-formwork-deadline", "seconds, such as 30", 86_400.0)?
                    .map(Duration::from_secs_f64),
                is_eager: false,
            },
            absent: text("x-formwork-absent")?.map(|text| absent(&text)).transpose()?,
            coerce: text("x-formwork-coerce")?
                .map(|text| text.parse().map_err(|_| wrong("x-formwork-coerce", COERCE)))
                .transpose()?,
            evidence,
            is_eager,
            is_new: is_new(headers),
            tags,
            trace: trace::of(headers),
            user: text("x-formwork-user")?.map(|user| name("x-formwork-user", &user)).transpose()?,
        })
    }
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
