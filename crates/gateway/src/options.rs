//! Options in headers, beside the protocol.

use std::time::Duration;

use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderValue};
use formwork_core::{Absent, Coerce, misspelled};

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

/// The most that headers ask for beside the protocol, in the order of what it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extra {
    Nothing,
    /// Evidence, which only a run has.
    Evidence,
    /// Other values than those of the model.
    Changes,
    /// The first attempt as it comes.
    Eager,
}

/// The most tags, and the most characters of each and of a user's name.
const MAX_TAGS: usize = 16;
const MAX_NAME: usize = 128;

/// The least budget and deadline of a request: costs are counted in millionths of a US dollar.
pub(crate) const MIN: f64 = 1e-6;

const PREFIX: &str = "x-formwork-";

/// A header that is an option.
pub(crate) struct Header {
    pub(crate) name: &'static str,
    /// One sentence or more for the document of the service.
    pub(crate) about: &'static str,
    /// Reads its text.
    read: fn(&mut Options, &Header, &str) -> Result<(), Problem>,
}

/// The headers that are options.
pub(crate) const OPTIONS: [Header; 9] = [
    Header {
        name: "x-formwork-contract",
        about: "The name of a contract of the folder.",
        read: |options, header, text| {
            let name = Some(text.to_owned()).filter(|name| !name.is_empty());
            options.contract = Some(name.ok_or_else(|| header.wrong("the name of a contract"))?);
            Ok(())
        },
    },
    Header {
        name: "x-formwork-budget",
        about: "The most that the request may cost, in US dollars. With `n`, each answer has an equal share.",
        read: |options, header, text| {
            let usd = text.strip_prefix('$').unwrap_or(text);
            let usd = header.number(usd, "US dollars", "0.05", 1e6)?;
            options.bounds.budget = Some((usd * 1e6).round() as u64);
            Ok(())
        },
    },
    Header {
        name: "x-formwork-deadline",
        about: "The most seconds that the request may take.",
        read: |options, header, text| {
            let seconds = header.number(text, "seconds", "30", 86_400.0)?;
            options.bounds.deadline = Some(Duration::from_secs_f64(seconds));
            Ok(())
        },
    },
    Header {
        name: "x-formwork-stream",
        about: "`certain` (default) or `eager`.",
        read: |options, header, text| {
            options.is_eager = header.choice(text, ["certain", "eager"])?;
            Ok(())
        },
    },
    Header {
        name: "x-formwork-absent",
        about: "The members of the schema that the text may lack: `all`, or paths with commas between.",
        read: |options, header, text| {
            options.absent = Some(match text {
                "all" => Absent::All,
                paths => {
                    let paths = paths.split(',').map(|path| path.trim().parse()).collect::<Result<_, _>>();
                    Absent::Paths(
                        paths.map_err(|_| {
                            header.wrong("`all`, or paths such as `$.birth, $.items[*].note`")
                        })?,
                    )
                }
            });
            Ok(())
        },
    },
    Header {
        name: "x-formwork-coerce",
        about: "What is done with values that do not fit the schema: `strict`, `ask`, `fix`, `drop`, `default` or `guess`, or a path before it.",
        read: |options, header, text| {
            let what =
                "`strict`, `ask`, `fix`, `drop`, `default` or `guess`, or a path before it: `$.note=drop`";
            options.coerce = Some(text.parse().map_err(|_| header.wrong(what))?);
            Ok(())
        },
    },
    Header {
        name: "x-formwork-evidence",
        about: "`on`: the places of the values in the messages, and the confidence in each value, in `formwork` of the usage.",
        read: |options, header, text| {
            options.evidence = header.choice(text, ["off", "on"])?;
            Ok(())
        },
    },
    Header {
        name: "x-formwork-tags",
        about: "Labels of the run in the ledger, with commas between.",
        read: |options, header, text| {
            let tags = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
            options.tags = tags.map(|tag| header.label(tag)).collect::<Result<_, _>>()?;
            if options.tags.len() > MAX_TAGS {
                return Err(header.wrong("at most 16 names"));
            }
            Ok(())
        },
    },
    Header {
        name: "x-formwork-user",
        about: "The user of the run in the ledger.",
        read: |options, header, text| {
            // A proxy may send the header of a user without a name.
            options.user = (!text.is_empty()).then(|| header.label(text)).transpose()?;
            Ok(())
        },
    },
];

impl Header {
    fn wrong(&self, what: &str) -> Problem {
        Problem::invalid(self.name, format!("the header `{}`: expected {what}", self.name))
    }

    /// Reads a number.
    fn number(&self, text: &str, unit: &str, example: &str, max: f64) -> Result<f64, Problem> {
        let number = text.parse().ok().filter(|number| (MIN..=max).contains(number));
        number.ok_or_else(|| self.wrong(&format!("{unit}, such as {example}: a number from {MIN} to {max}")))
    }

    /// Returns whether several headers of this name are one list.
    fn is_list(&self) -> bool {
        matches!(self.name, "x-formwork-tags" | "x-formwork-absent")
    }

    /// Returns the text of the headers of this name.
    fn text(&self, headers: &HeaderMap) -> Result<String, Problem> {
        let texts = headers.get_all(self.name).iter().map(HeaderValue::to_str);
        let texts: Result<Vec<_>, _> = texts.collect();
        match texts.map_err(|_| self.wrong("visible ASCII characters"))?[..] {
            [_, _, ..] if !self.is_list() => Err(self.wrong("one value only")),
            ref texts => Ok(texts.join(",").trim().to_owned()),
        }
    }

    /// Returns whether the text is the second of two words.
    fn choice(&self, text: &str, [no, yes]: [&str; 2]) -> Result<bool, Problem> {
        match text == yes {
            false if text != no => Err(self.wrong(&format!("`{no}` or `{yes}`"))),
            is_yes => Ok(is_yes),
        }
    }

    fn label(&self, text: &str) -> Result<String, Problem> {
        match text.chars().count() {
            1..=MAX_NAME => Ok(text.to_owned()),
            _ => Err(self.wrong("names of 1 to 128 characters")),
        }
    }
}

impl Options {
    /// Reads the headers of a request.
    ///
    /// # Errors
    /// [`Problem`] that names the header.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut options = Self { is_new: is_new(headers), ..Self::default() };
        for name in headers.keys().filter(|name| name.as_str().starts_with(PREFIX)) {
            let name = name.as_str();
            let Some(header) = OPTIONS.iter().find(|header| header.name == name) else {
                // A header of another meaning may have any bytes.
                is_other(name)?;
                continue;
            };
            (header.read)(&mut options, header, &header.text(headers)?)?;
        }
        Ok(options)
    }

    /// Returns the most that is asked for beside the protocol.
    pub(crate) const fn extra(&self) -> Extra {
        match self {
            Self { is_eager: true, .. } => Extra::Eager,
            Self { absent: Some(_), .. } | Self { coerce: Some(_), .. } => Extra::Changes,
            Self { evidence: true, .. } => Extra::Evidence,
            _ => Extra::Nothing,
        }
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
}

/// Refuses a header that nearly has the name of an option.
fn is_other(name: &str) -> Result<(), Problem> {
    let end = |header: &Header| header.name.trim_start_matches(PREFIX);
    let Some(meant) = misspelled(name.trim_start_matches(PREFIX), OPTIONS.iter().map(end), 2) else {
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

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    #[test]
    fn a_number_outside_of_its_range_is_refused_with_the_range() {
        let of = |name: &'static str, text: &'static str| {
            let header = (HeaderName::from_static(name), HeaderValue::from_static(text));
            Options::of(&HeaderMap::from_iter([header])).map(|options| options.bounds)
        };
        let (deadline, budget) = ("x-formwork-deadline", "x-formwork-budget");
        assert_eq!(of(deadline, "86400").unwrap().deadline, Some(Duration::from_secs(86_400)));
        assert_eq!(of(budget, "$1000000").unwrap().budget, Some(1_000_000_000_000));
        for (name, text, says) in [
            (deadline, "999999", "expected seconds, such as 30: a number from 0.000001 to 86400"),
            (deadline, "0", "to 86400"),
            (deadline, "soon", "to 86400"),
            (deadline, "$30", "to 86400"),
            (deadline, "", "to 86400"),
            (budget, "1000001", "expected US dollars, such as 0.05: a number from 0.000001 to 1000000"),
            (budget, "0.0000004", "to 1000000"),
            (budget, "$$1", "to 1000000"),
            (budget, " ", "to 1000000"),
            ("x-formwork-contract", "", "expected the name of a contract"),
        ] {
            let message = of(name, text).unwrap_err().message;
            assert!(message.contains(name) && message.ends_with(says), "{text}: {message}");
        }
    }

    #[test]
    fn a_header_has_one_value_unless_it_is_a_list() {
        for header in &OPTIONS {
            let of = |count: usize| {
                let mut headers = HeaderMap::new();
                for nth in 0..count {
                    let value =
                        if header.name == "x-formwork-absent" { format!("$.a{nth}") } else { "1".to_owned() };
                    headers.append(header.name, value.parse().unwrap());
                }
                Options::of(&headers)
            };
            let refused = of(2).map_err(|problem| problem.message);
            match header.name {
                "x-formwork-tags" => assert_eq!(refused.unwrap().tags, ["1", "1"]),
                "x-formwork-absent" => {
                    assert!(matches!(refused.unwrap().absent, Some(Absent::Paths(paths)) if paths.len() == 2))
                }
                name => assert_eq!(refused, Err(format!("the header `{name}`: expected one value only"))),
            }
        }
    }

    #[test]
    fn only_labels_may_be_empty() {
        for header in &OPTIONS {
            let of = Options::of(&HeaderMap::from_iter([(
                HeaderName::from_static(header.name),
                HeaderValue::from_static(" "),
            )]));
            let is_label = ["x-formwork-tags", "x-formwork-user"].contains(&header.name);
            assert_eq!(of.is_ok(), is_label, "{}", header.name);
        }
    }

    #[test]
    fn only_an_option_is_refused_for_its_bytes() {
        let of = |name: &str| {
            let value = HeaderValue::from_bytes("Müller".as_bytes()).unwrap();
            Options::of(&HeaderMap::from_iter([(HeaderName::try_from(name).unwrap(), value)]))
        };
        assert!(OPTIONS.iter().all(|header| of(header.name).is_err()));
        assert!(of("x-formwork-note").is_ok());
        let of = |name: &str| {
            Options::of(&HeaderMap::from_iter([(
                HeaderName::try_from(name).unwrap(),
                HeaderValue::from_static("on"),
            )]))
        };
        let error = of("x-formwork-evidance").unwrap_err();
        assert!(error.message.ends_with("did you mean `x-formwork-evidence`?"), "{error:?}");
        // Clients may send back what a response had, and have headers of their own.
        for name in [
            "run",
            "calls",
            "cache",
            "ignored",
            "warnings",
            "estimated",
            "user-id",
            "team",
            "event",
            "context",
            "deadline-ms",
            "streaming",
        ] {
            assert!(of(&format!("x-formwork-{name}")).is_ok(), "{name}");
        }
    }
}
