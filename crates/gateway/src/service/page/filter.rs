//! The filter of runs in the query of a page.

use formwork_core::Time;
use formwork_ledger::{Feedback, KeyId, Ledger, RunOutcome, RunQuery};

use crate::problem::Problem;

/// A field of the form.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) value: String,
    /// The values that it may have; empty for any.
    pub(super) options: Vec<&'static str>,
}

/// The number of runs that a page examines, so that it takes at most about 100 ms.
pub(super) const SCAN: usize = 50_000;

/// The value of a member for runs without it.
const NONE: &str = "(none)";

/// Returns the value of a member that selects the runs with this name, or those without one for an empty name.
pub(super) const fn or_none(name: &str) -> &str {
    if name.is_empty() { NONE } else { name }
}

/// All fields of the form, by name, with their labels.
const FIELDS: [(&str, &str); 18] = [
    ("text", "Text"),
    ("since", "Since, in seconds (Unix time)"),
    ("until", "Before, in seconds (Unix time)"),
    ("outcome", "Outcome"),
    ("contract", "Contract, or (none)"),
    ("digest", "Digest of the contract"),
    ("model", "Model, or (none)"),
    ("target", "Target"),
    ("source", "From"),
    ("key", "Key, or (none)"),
    ("user", "User"),
    ("tag", "Tag"),
    ("class", "Class of a violation"),
    ("path", "Path of a violation"),
    ("called", "Model of a call"),
    ("feedback", "Feedback"),
    ("retried", "Retried"),
    ("unsure", "Unsure"),
];

/// The members of a query.
#[derive(Debug, Default)]
pub(super) struct Filter(Vec<(String, String)>);

impl Filter {
    pub(super) fn parse(query: &str) -> Self {
        Self(
            form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .filter(|(_, value)| !value.is_empty())
                .collect(),
        )
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the query of a page, with another `before`.
    pub(super) fn href(&self, path: &str, before: &str) -> String {
        let own = FIELDS.iter().filter_map(|(name, _)| Some((*name, self.get(name)?)));
        let all: Vec<_> = own.chain([("before", before)]).collect();
        super::href(path, &all)
    }

    pub(super) fn fields(&self) -> Vec<Field> {
        let field = |(name, label): (&'static str, &'static str)| Field {
            name,
            label,
            value: self.get(name).unwrap_or_default().to_owned(),
            options: match name {
                "outcome" => RunOutcome::names().collect(),
                "feedback" => vec![Feedback::Good.name(), Feedback::Bad.name()],
                "retried" | "unsure" => vec!["yes"],
                _ => Vec::new(),
            },
        };
        FIELDS.into_iter().map(field).collect()
    }

    /// Returns the verdict on a run; `None` without one.
    ///
    /// # Errors
    /// [`Kind::Invalid`](crate::problem::Kind::Invalid).
    pub(super) fn feedback(&self) -> Result<Option<Feedback>, Problem> {
        let known = |name| [Feedback::Good, Feedback::Bad].into_iter().find(|known| known.name() == name);
        let feedback =
            self.get("feedback").map(|name| known(name).ok_or_else(|| invalid("feedback", "good or bad")));
        feedback.transpose()
    }

    /// Returns the query of the ledger.
    ///
    /// # Errors
    /// [`Kind::Invalid`](crate::problem::Kind::Invalid) with the name of a member whose value cannot be read.
    pub(super) fn query(&self, ledger: &Ledger) -> Result<RunQuery, Problem> {
        let moment = |name: &str| {
            let seconds = self.get(name).map(str::parse::<u64>).transpose();
            let seconds = seconds.map_err(|_| invalid(name, "a number of seconds since 1970"))?;
            Ok::<_, Problem>(seconds.map(|seconds| Time(seconds.saturating_mul(1000))))
        };
        let text = |name: &str| self.get(name).map(str::to_owned);
        let or_none = |name: &str| text(name).map(|value| if value == NONE { String::new() } else { value });
        let mut query = RunQuery {
            since: moment("since")?,
            until: moment("until")?,
            contract: or_none("contract"),
            digest: text("digest"),
            model: or_none("model"),
            target: text("target"),
            source: text("source"),
            user: text("user"),
            tag: text("tag"),
            class: text("class"),
            path: text("path"),
            called: or_none("called"),
            text: text("text"),
            retried: self.get("retried").is_some(),
            unsure: self.get("unsure").is_some(),
            scan: SCAN,
            ..RunQuery::default()
        };
        if let Some(id) = self.get("before") {
            query.before = Some(id.parse().map_err(|_| invalid("before", "the id of a run"))?);
        }
        if let Some(name) = self.get("outcome") {
            let names = RunOutcome::names().collect::<Vec<_>>().join(", ");
            query.outcome = Some(
                RunOutcome::from_name(name).ok_or_else(|| invalid("outcome", &format!("one of {names}")))?,
            );
        }
        query.feedback = self.feedback()?;
        if let Some(name) = self.get("key") {
            let find = || ledger.key(name).map_err(|_| invalid("key", "the name of a key"));
            query.key = Some(if name == NONE { KeyId::NONE } else { find()?.id });
        }
        Ok(query)
    }
}

pub(super) fn invalid(name: &str, rule: &str) -> Problem {
    Problem::invalid(name, format!("`{name}` has to be {rule}"))
}
