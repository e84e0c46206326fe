//! A model that gives what it is asked for, and the damage of its first answer.

use serde_json::{Map, Value, json};

use formwork_core::JsonPath;

/// The schema of an invoice.
pub(super) fn schema() -> Value {
    let item = json!({
        "type": "object",
        "properties": {
            "sku": {"type": "string"},
            "quantity": {"type": "integer", "minimum": 0},
            "tags": {"type": "array", "items": {"type": "string"}},
            "price": {"type": "number"},
        },
        "required": ["sku", "quantity", "tags", "price"],
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "properties": {
            "number": {"type": "string"},
            "buyer": {"type": "string"},
            "items": {"type": "array", "items": item},
            "seller": {"type": "string"},
            "total": {"type": "number"},
        },
        "required": ["number", "buyer", "items", "seller", "total"],
        "additionalProperties": false,
    })
}

/// The invoice, with 100 items.
pub(super) fn invoice() -> Value {
    let items: Vec<Value> = (0..100)
        .map(|nth| {
            let (sku, tags) = (format!("A-{}", 1000 + nth), vec!["urgent"; nth % 2]);
            json!({"sku": sku, "quantity": nth % 3, "tags": tags, "price": nth as f64 + 0.5})
        })
        .collect();
    json!({"number": "2026-17", "buyer": "Ada King", "items": items, "seller": "Böhm", "total": 99.5})
}

/// The text that the invoice is extracted from, which has each value once.
pub(super) fn text(invoice: &Value) -> String {
    let mut text =
        format!("Invoice {} of {} for {}\n", invoice["number"], invoice["seller"], invoice["buyer"]);
    for (nth, item) in invoice["items"].as_array().into_iter().flatten().enumerate() {
        text.push_str(&format!(
            "{:>3}. Article {} ordered as {}, {} pieces at {} EUR each\n",
            nth + 1,
            item["sku"],
            item["tags"],
            item["quantity"],
            item["price"]
        ));
    }
    text + &format!("Total: {} EUR\n", invoice["total"])
}

/// The damage of the first answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Damage {
    None,
    /// Nine of the items have a wrong value.
    Nine,
    /// All items lack the same member.
    All,
    /// The answer ends after this percentage of its bytes.
    Cut(usize),
}

impl Damage {
    pub(super) const ALL: [(&str, Self); 7] = [
        ("perfect", Self::None),
        ("nine", Self::Nine),
        ("all", Self::All),
        ("cut10", Self::Cut(10)),
        ("cut50", Self::Cut(50)),
        ("cut90", Self::Cut(90)),
        ("cut99", Self::Cut(99)),
    ];

    /// Returns the first answer.
    pub(super) fn answer(self, invoice: &Value) -> String {
        let mut broken = invoice.clone();
        let step = if self == Self::Nine { 11 } else { 1 };
        for item in broken["items"].as_array_mut().into_iter().flatten().step_by(step).take(100 / step) {
            match self {
                Self::Nine => item["quantity"] = json!("many"),
                Self::All => _ = item.as_object_mut().and_then(|item| item.shift_remove("price")),
                Self::None | Self::Cut(_) => {}
            }
        }
        let mut text = broken.to_string();
        if let Self::Cut(percent) = self {
            text.truncate(text.floor_char_boundary(text.len() * percent / 100));
        }
        text
    }
}

/// Returns the answer of a perfect model to a request: the values that its last message names, or else the whole.
pub(super) fn perfect(message: &str, invoice: &Value) -> String {
    let path = |name: &str| format!("$.{name}").parse::<JsonPath>().unwrap_or_default();
    let (mut answer, mut group, mut by_tens) = (Map::new(), String::new(), false);
    for line in message.lines() {
        if let Some((name, rest)) = line.strip_prefix("- \"").and_then(|line| line.split_once('"')) {
            (group, by_tens) = (name.to_owned(), rest.contains("last digit"));
            if let Some((list, from)) = name.strip_suffix(":]").and_then(|name| name.rsplit_once('[')) {
                let items =
                    path(list).get(invoice).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let rest = from.parse().ok().and_then(|from: usize| items.get(from..)).unwrap_or_default();
                answer.insert(name.to_owned(), rest.into());
            } else if name.contains("[*]") {
                answer.insert(name.to_owned(), json!({}));
            } else if let Some(value) = path(name).get(invoice) {
                answer.insert(name.to_owned(), value.clone());
            }
        } else if let Some((range, _)) = line.strip_prefix("  ").and_then(|line| line.split_once(": "))
            && let Some(member) = answer.get_mut(&group)
        {
            let (from, to) = range.split_once(" to ").unwrap_or((range, range));
            let (Ok(from), Ok(to)) = (from.parse::<usize>(), to.parse::<usize>()) else { continue };
            for index in from..=to {
                let Some(value) = path(&group.replacen('*', &index.to_string(), 1)).get(invoice) else {
                    continue;
                };
                match by_tens {
                    true => member[(index / 10 * 10).to_string()][(index % 10).to_string()] = value.clone(),
                    false => member[index.to_string()] = value.clone(),
                }
            }
        }
    }
    if answer.is_empty() { invoice.to_string() } else { Value::Object(answer).to_string() }
}
