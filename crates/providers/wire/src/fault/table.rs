//! The table of phrases by which the errors of servers are recognized: `faults.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use formwork_core::FaultKind;
use serde::Deserialize;
use serde_json::Value;

use super::envelope::message_of;
use crate::RequestInfo;

/// The table. Parsing cannot fail at run time, because a test parses the same file.
static TABLE: LazyLock<Table> = LazyLock::new(|| serde_json::from_str(TEXT).unwrap_or_default());

const TEXT: &str = include_str!("faults.json");

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// The first row that fits an error determines its class.
    rows: Vec<Row>,
    /// The HTTP status for an error that has only a code, by a part of the code.
    statuses_of_codes: Vec<(String, u16)>,
    /// Signs of errors that are no faults.
    lists: BTreeMap<String, Vec<String>>,
}

/// A class of errors.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// The protocol, or the beginning of its name. Empty: all protocols.
    #[serde(default)]
    of: String,
    /// The HTTP statuses. Empty: all statuses.
    #[serde(default)]
    statuses: Vec<u16>,
    /// The condition on the request.
    only: Option<Only>,
    /// The signs, one of which the error has (see [`ErrorText::has`]). Empty: all errors with these statuses.
    #[serde(default)]
    signs: Vec<String>,
    kind: FaultKind,
    /// Advice on what to do.
    #[serde(default)]
    advice: String,
    /// Advice by the name of the refused parameter, and for all others under the empty name. The error must name a parameter.
    parameters: Option<BTreeMap<String, String>>,
    /// The reason for the row.
    #[serde(default, rename = "note")]
    _note: String,
}

/// A condition on the request that a server refused.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Only {
    /// The request has an enforced schema.
    Schema,
    /// The schema is that of a tool which the model is forced to call.
    Tool,
    /// The schema has a `pattern`.
    Pattern,
}

impl Row {
    fn fits(&self, request: &RequestInfo, status: u16, error: &ErrorText) -> bool {
        let is_request = match self.only {
            None => true,
            Some(Only::Schema) => request.has_schema(),
            Some(Only::Tool) => request.enforcement == formwork_core::Enforcement::Tool,
            Some(Only::Pattern) => request.has_pattern,
        };
        is_request
            && request.protocol.starts_with(&self.of)
            && (self.statuses.is_empty() || self.statuses.contains(&status))
            && (self.signs.is_empty() || self.signs.iter().any(|sign| error.has(sign)))
            && (self.parameters.is_none() || error.parameter().is_some())
    }

    fn advice(&self, request: &RequestInfo, error: &ErrorText) -> String {
        let name = error.parameter().unwrap_or_default();
        let of_parameter = self.parameters.as_ref().and_then(|all| all.get(name).or_else(|| all.get("")));
        let advice = of_parameter.unwrap_or(&self.advice);
        advice.replace("{model}", &request.model).replace("{parameter}", name)
    }
}

/// The texts of an error by which it is recognized, in lower case.
pub(super) struct ErrorText {
    message: String,
    /// The codes, types and reasons of the error.
    codes: Vec<String>,
    /// The property of the request that the server refused.
    param: Option<String>,
}

impl ErrorText {
    /// Reads an error. A body that is not JSON is the message.
    pub(super) fn of(document: &Value, body: &[u8]) -> Self {
        let error = document.get("error").filter(|error| error.is_object()).unwrap_or(document);
        let details = || error["details"].as_array().into_iter().flatten();
        let violations = details().filter_map(|detail| detail["violations"].as_array()).flatten();
        let codes = [&error["code"], &error["type"], &error["status"]]
            .into_iter()
            .chain(details().map(|detail| &detail["reason"]))
            .chain(violations.flat_map(|violation| [&violation["quotaId"], &violation["quotaMetric"]]));
        let mut codes: Vec<String> = codes.filter_map(Value::as_str).map(str::to_lowercase).collect();
        let extra = extra_member(document);
        codes.extend(extra.is_some().then(|| "unknown_parameter".to_owned()));
        let param = error["param"].as_str().filter(|param| !param.is_empty()).map(str::to_lowercase);
        Self { message: message_of(document, body).to_lowercase(), codes, param: param.or(extra) }
    }

    /// Returns whether the error has a sign: `code:` and a part of a code, `param:` and the beginning of the refused property, `=`
    /// and the whole message without a final period, or parts of the message, joined by ` + `.
    fn has(&self, sign: &str) -> bool {
        if let Some(code) = sign.strip_prefix("code:") {
            return self.codes.iter().any(|known| known.contains(code));
        }
        if let Some(param) = sign.strip_prefix("param:") {
            return self.param.as_ref().is_some_and(|known| known.starts_with(param));
        }
        if let Some(message) = sign.strip_prefix('=') {
            return self.message.trim_end_matches('.') == message;
        }
        sign.split(" + ").all(|part| self.message.contains(part))
    }

    /// Returns whether the error has one of the signs of a list.
    pub(super) fn is(&self, list: &str) -> bool {
        TABLE.lists.get(list).is_some_and(|signs| signs.iter().any(|sign| self.has(sign)))
    }

    /// Returns the HTTP status that corresponds to the codes of the error, if there is one.
    pub(super) fn status(&self) -> Option<u16> {
        let known = |(code, _): &&(String, u16)| self.codes.iter().any(|found| found.contains(code.as_str()));
        TABLE.statuses_of_codes.iter().find(known).map(|(_, status)| *status)
    }

    /// Returns the class of the error and advice on what to do, which may be empty.
    pub(super) fn class(&self, request: &RequestInfo, status: u16) -> (FaultKind, String) {
        match TABLE.rows.iter().find(|row| row.fits(request, status, self)) {
            Some(row) => (row.kind, row.advice(request, self)),
            None if matches!(status, 409 | 425 | 500..) => (FaultKind::Overloaded, String::new()),
            None if matches!(status, 300..=399) => (FaultKind::BadWire, String::new()),
            None => (FaultKind::BadRequest, String::new()),
        }
    }

    /// Returns the refused parameter: the value of `param`, or the first quoted word of the message.
    fn parameter(&self) -> Option<&str> {
        let quoted = || self.message.split(['\'', '`', '"']).nth(1);
        self.param.as_deref().or_else(quoted).filter(|name| !name.is_empty())
    }
}

/// Returns the unknown property that a server with a closed request schema refused. Mistral reports it as `extra_forbidden`,
/// in some cases as JSON inside the string `message`.
fn extra_member(document: &Value) -> Option<String> {
    let inner = document["message"].as_str().and_then(|text| serde_json::from_str(text).ok());
    let detail = [Some(document), inner.as_ref()].into_iter().flatten().find_map(|body: &Value| {
        body.pointer("/detail/0").filter(|detail| detail["type"] == "extra_forbidden")
    })?;
    Some(detail["loc"].as_array()?.last()?.as_str()?.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_parses_and_its_signs_are_lower_case() {
        let table: Table = serde_json::from_str(TEXT).unwrap();
        assert!(table.rows.len() > 50);
        let signs = table.rows.iter().flat_map(|row| &row.signs).chain(table.lists.values().flatten());
        for sign in signs {
            assert!(!sign.is_empty() && *sign == sign.to_lowercase(), "{sign:?}");
        }
        for (of, next) in table.rows.iter().zip(table.rows.iter().skip(1)) {
            // Rows for all protocols come last, so that a row of a protocol can precede them.
            assert!(!of.of.is_empty() || next.of.is_empty());
        }
    }
}
