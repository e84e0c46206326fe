//! The settings of a model as members of a request body.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use formwork_core::{Call, Capabilities, ModelSettings};
use serde_json::{Map, Value};

/// The members by wire and setting. `"$"` stands for the value, and `$each` has the members of each value that the wire takes. In the
/// file, `$as` names the wire with the same members: of one setting, or of all settings that a wire does not have itself.
static TABLE: LazyLock<Value> = LazyLock::new(|| {
    let table: Value = serde_json::from_str(include_str!("settings.json")).unwrap_or_default();
    let wires = table.as_object().into_iter().flatten().map(|(wire, _)| wire);
    wires.map(|wire| (wire.clone(), Value::Object(expanded(&table, wire)))).collect()
});

/// The members of a request body beside those of the call.
///
/// ```
/// use formwork_core::{Capabilities, ModelSettings};
/// use formwork_wire::Members;
///
/// let settings = ModelSettings { top_k: Some(5), user: Some("u-1".to_owned()), ..ModelSettings::default() };
/// let mut capabilities = Capabilities::default();
/// let members = Members::default().with_settings("cohere", &settings, &mut capabilities);
/// let request = formwork_wire::post("/v2/chat", &serde_json::json!({"model": "m"}), &members)?;
/// assert_eq!(&request.body()[..], br#"{"model":"m","k":5}"#);
/// assert_eq!(capabilities.ignored_settings, ["user"]);
/// # Ok::<(), formwork_core::Fault>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
pub struct Members {
    /// Members that are [merged](merge) into the body and replace its values.
    pub(crate) extra: Map<String, Value>,
    /// Members that are added where the body has none.
    pub(crate) settings: Map<String, Value>,
    /// The wire whose members calls may set.
    wire: Option<Arc<str>>,
}

/// Members that replace those of the call.
impl From<Map<String, Value>> for Members {
    fn from(extra: Map<String, Value>) -> Self {
        Self { extra, ..Self::default() }
    }
}

impl Members {
    /// Sets the members of settings on a wire, such as `openai/chat`, or `openai/VENDOR` for a compatible API (default: none). Those that the wire does not take are added to
    /// the [ignored](Capabilities::ignored_settings) settings. Parameters of sampling that the capabilities promise are left to the calls.
    pub fn with_settings(
        mut self,
        wire: &str,
        settings: &ModelSettings,
        capabilities: &mut Capabilities,
    ) -> Self {
        let is_other = wire.starts_with("openai/") && TABLE[wire].is_null();
        let wire = if is_other { "openai/compatible" } else { wire };
        self.settings.clear();
        self.wire = Some(wire.into());
        capabilities.settings = taken(wire);
        for (name, value) in all(settings) {
            let by_calls = match name.as_str() {
                "top_p" => capabilities.top_p,
                "seed" => capabilities.seed,
                "frequency_penalty" => capabilities.frequency_penalty,
                _ => false,
            };
            if by_calls {
                continue;
            }
            match members(wire, &name, &value) {
                Some(Value::Object(members)) => add(&mut self.settings, &members),
                _ => capabilities.ignored_settings.push(match (value, is_known(wire, &name)) {
                    (Value::String(value), true) => format!("{name} = {value:?}"),
                    _ => name,
                }),
            }
        }
        self
    }

    /// Returns these members with the settings of a call, which replace the same ones of the configuration. Those that the wire does not
    /// take are left out.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use formwork_core::{Call, Capabilities, Enforcement, Lowered, Message, ModelSettings};
    /// use formwork_wire::Members;
    ///
    /// let own = ModelSettings { top_k: Some(5), ..ModelSettings::default() };
    /// let members = Members::default().with_settings("cohere", &own, &mut Capabilities::default());
    /// let mut call = Call::new([Message::user("Hi.")], Lowered::new(Enforcement::None, None));
    /// call.settings = Some(Arc::new(ModelSettings { top_k: Some(9), ..ModelSettings::default() }));
    /// let request = formwork_wire::post("/v2/chat", &serde_json::json!({}), &members.of(&call))?;
    /// assert_eq!(&request.body()[..], br#"{"k":9}"#);
    /// # Ok::<(), formwork_core::Fault>(())
    /// ```
    pub fn of(&self, call: &Call) -> Cow<'_, Self> {
        let (Some(wire), Some(settings)) = (&self.wire, &call.settings) else { return Cow::Borrowed(self) };
        let mut own = Map::new();
        for (name, value) in all(settings) {
            if let Some(Value::Object(members)) = members(wire, &name, &value) {
                add(&mut own, &members);
            }
        }
        add(&mut own, &self.settings);
        Cow::Owned(Self { settings: own, ..self.clone() })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.extra.is_empty() && self.settings.is_empty()
    }

    /// Adds these members to a body. Settings of tools are left out where the model may call none, because servers refuse them there:
    /// in a body without tools, and beside Anthropic's choice `none`, which has no other members.
    pub(crate) fn write(&self, body: &mut Map<String, Value>) {
        let is_none = |choice: &Value| choice == "none" || choice["type"] == "none";
        let may_call = body.contains_key("tools") && !body.get("tool_choice").is_some_and(is_none);
        let is_of_tools = |name: &str| matches!(name, "tool_choice" | "parallel_tool_calls");
        let settings = self.settings.iter().filter(|(name, _)| may_call || !is_of_tools(name));
        add(body, &settings.map(|(name, value)| (name.clone(), value.clone())).collect());
        merge(body, &self.extra);
    }
}

/// Returns the settings of a wire with those of the wires that it refers to.
fn expanded(table: &Value, wire: &str) -> Map<String, Value> {
    let mut settings = table[wire].as_object().cloned().unwrap_or_default();
    if let Some(Value::String(other)) = settings.shift_remove("$as") {
        expanded(table, &other)
            .into_iter()
            .for_each(|(name, template)| _ = settings.entry(name).or_insert(template));
    }
    for (name, template) in &mut settings {
        if let Some(other) = template["$as"].as_str() {
            *template = expanded(table, other).shift_remove(name).unwrap_or_default();
        }
    }
    settings
}

/// Returns the settings that are set, by their names.
fn all(settings: &ModelSettings) -> Map<String, Value> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(settings)) => settings,
        _ => Map::new(),
    }
}

/// Returns the settings that a wire takes, as [`Capabilities::settings`] has them.
fn taken(wire: &str) -> Vec<String> {
    let mut taken = Vec::new();
    for (name, template) in TABLE[wire].as_object().into_iter().flatten() {
        match template["$each"].as_object() {
            Some(each) => taken.extend(each.keys().map(|value| format!("{name}={value}"))),
            None if template.is_object() => taken.push(name.clone()),
            None => {}
        }
    }
    taken
}

/// Returns whether a wire has a setting, at least with another value.
fn is_known(wire: &str, name: &str) -> bool {
    !TABLE[wire][name].is_null()
}

/// Returns the members of a setting; `None` if the wire does not take it.
fn members(wire: &str, name: &str, value: &Value) -> Option<Value> {
    let template = &TABLE[wire][name];
    let each = template.get("$each");
    let key = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let template = each.map_or(Some(template), |each| each.get(key.as_str()))?;
    template.is_object().then(|| filled(template, value))
}

/// Returns a template with the value in place of `"$"`.
fn filled(template: &Value, value: &Value) -> Value {
    match template {
        Value::String(hole) if hole == "$" => value.clone(),
        Value::Object(members) => {
            members.iter().map(|(name, inside)| (name.clone(), filled(inside, value))).collect()
        }
        other => other.clone(),
    }
}

/// Adds the members that an object does not have, in the objects inside of it too.
fn add(into: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, value) in more {
        match (into.get_mut(name), value) {
            (Some(Value::Object(known)), Value::Object(value)) => add(known, value),
            (Some(_), _) => {}
            (None, _) => _ = into.insert(name.clone(), value.clone()),
        }
    }
}

/// Merges more members into an object: objects of the same name are merged, other values are replaced. So `{"text": {"verbosity": "low"}}`
/// keeps the schema in `text`.
///
/// ```
/// use serde_json::{Value, json};
///
/// let mut body = json!({"text": {"format": {"type": "json_schema"}}, "n": 1});
/// if let (Some(body), Value::Object(more)) = (body.as_object_mut(), json!({"text": {"verbosity": "low"}, "n": 2})) {
///     formwork_wire::merge(body, &more);
/// }
/// assert_eq!(body, json!({"text": {"format": {"type": "json_schema"}, "verbosity": "low"}, "n": 2}));
/// ```
pub fn merge(into: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, value) in more {
        match (into.get_mut(name), value) {
            (Some(Value::Object(known)), Value::Object(value)) => merge(known, value),
            _ => _ = into.insert(name.clone(), value.clone()),
        }
    }
}
