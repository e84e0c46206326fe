use std::fmt;

use formwork_core::JsonPath;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{
    Budget, Error, Location, MessageFormatter as _, Options, Spanned, UserMessageFormatter,
    from_str_with_options,
};

use super::{Parsed, Place};

pub(super) fn parse(text: &str) -> Parsed {
    let read: Spanned<Node> =
        from_str_with_options(text, options()).map_err(|error| refused(text, &error))?;
    let mut places = Vec::new();
    let value = flatten(text, read, None, JsonPath::root(), &mut places);
    Ok((value, places))
}

/// Returns the parser's limits: far above any hand-written document, but below one with aliases that expand
/// exponentially.
fn options() -> Options {
    let mut budget = Budget::default();
    budget.max_events = 60_000;
    budget.max_nodes = 20_000;
    budget.max_aliases = 1_000;
    budget.max_anchors = 200;
    budget.max_depth = 48;
    budget.flow_nesting_limit = 48;
    budget.max_documents = 1;
    budget.max_recorded_anchor_events = 20_000;
    budget.max_recorded_anchor_bytes = super::MAX_BYTES;
    let mut options = Options::default();
    options.budget = Some(budget);
    options.alias_limits.max_total_replayed_events = 20_000;
    options.alias_limits.max_replay_stack_depth = 8;
    // YAML 1.2 has no boolean `yes` and `on`: both are strings.
    options.strict_booleans = true;
    options
}

/// Parts of messages of the parser, each with the change that the author of the file most likely needs.
const FIXES: [(&str, &str); 3] = [
    ("found a tab", ": indent with spaces"),
    (
        "mapping values are not allowed",
        ": put a text with `: ` between quotation marks, and begin the keys of one mapping in the same column",
    ),
    ("quoted scalar", ": is a quotation mark missing at the end of the text?"),
];

/// Returns the byte and the message of a parser error.
fn refused(text: &str, error: &Error) -> (usize, String) {
    let error = error.without_snippet();
    let mut message = UserMessageFormatter.format_message(error).into_owned();
    if let Some((_, fix)) = FIXES.iter().find(|(part, _)| message.contains(part)) {
        message.push_str(fix);
    }
    (error.location().map_or(0, |location| offset(text, location)), message)
}

/// Returns the byte offset of a line and a column in characters.
fn offset(text: &str, location: Location) -> usize {
    let (line, column) = (location.line().max(1) as usize, location.column().max(1) as usize);
    let start = if line == 1 {
        0
    } else {
        text.match_indices('\n').nth(line - 2).map_or(text.len(), |(at, _)| at + 1)
    };
    let rest = text.get(start..).unwrap_or_default();
    let within = rest.char_indices().nth(column - 1).map_or(rest.len(), |(at, _)| at);
    start + within
}

fn flatten(
    text: &str,
    node: Spanned<Node>,
    key: Option<usize>,
    path: JsonPath,
    places: &mut Vec<Place>,
) -> Value {
    places.push(Place { path: path.clone(), key, value: offset(text, node.referenced) });
    match node.value {
        Node::Scalar(value) => value,
        Node::List(items) => {
            let items = items.into_iter().enumerate();
            items.map(|(n, item)| flatten(text, item, None, path.index(n), places)).collect()
        }
        Node::Map(members) => {
            let members = members.into_iter().map(|(name, value)| {
                let at = offset(text, name.referenced);
                let value = flatten(text, value, Some(at), path.key(name.value.as_str()), places);
                (name.value, value)
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

/// A YAML value, with the location of each part.
enum Node {
    Scalar(Value),
    List(Vec<Spanned<Node>>),
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyNode)
    }
}

struct AnyNode;

impl<'de> Visitor<'de> for AnyNode {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has too")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Node, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("JSON has no number for this"))?;
        Ok(Node::Scalar(number.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
        let mut map: Vec<(Spanned<String>, Spanned<Node>)> = Vec::new();
        while let Some((name, value)) = members.next_entry::<Spanned<String>, _>()? {
            if map.iter().any(|(known, _)| known.value == name.value) {
                return Err(A::Error::custom(format!("`{}` is used twice", name.value)));
            }
            map.push((name, value));
        }
        Ok(Node::Map(map))
    }
}
