use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use formwork_core::{
    Enforcement, Lift, LiftOp, LossKind, Lower, LowerRequest, Lowered, Refused, Segment, Shown,
};
use serde_json::{Map, Value, json};

use crate::caps::{Caps, MAX_NAME};
use crate::expand::{Expanded, Receipt, expand, losses};
use crate::form::{
    Alternative, ArrayForm, Bound, Form, NumberForm, ObjectForm, Property, Shared, StringForm,
};
use crate::order::Order;
use crate::outline::outline;
use crate::scalars::MAX_SAFE;

/// The dialect of the `llguidance` crate (1.9), which constrains decoding in process, in vLLM and in SGLang.
///
/// What is sent is closed and bounded: objects have no members that the schema does not name, strings and arrays have a
/// length that fits into the tokens of the answer. A model that may go on does go on; what bounds it is the schema. The
/// model sees an outline of the schema in the prompt.
///
/// ```
/// use formwork_core::{Lower, LowerRequest};
/// use formwork_dialect::Llguidance;
///
/// let schema = serde_json::json!({"type": "object", "properties": {"tags": {"type": "array", "uniqueItems": true}}});
/// let lowered = Llguidance.lower(&LowerRequest::new(&schema))?;
/// let sent = lowered.schema.unwrap();
/// assert_eq!(sent["additionalProperties"], false);
/// assert_eq!(sent["properties"]["tags"]["maxItems"], 6);
/// assert!(lowered.losses.iter().any(|loss| loss.keyword == "uniqueItems"));
/// # Ok::<(), formwork_core::Refused>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Llguidance;

impl Lower for Llguidance {
    fn name(&self) -> &str {
        "llguidance"
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement::Schema
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        let Expanded { form, losses: receipts } = expand(request.schema, self.name())?;
        let mut writer = Writer {
            caps: Caps::fitting(&form, request.max_tokens),
            uses: HashMap::new(),
            defined: HashMap::new(),
            definitions: BTreeMap::new(),
            lift: Vec::new(),
            losses: receipts,
        };
        count_uses(&form, &mut writer.uses);
        let mut schema = writer.form(&form, &Order::new(request.dependencies), String::new());
        if let Value::Object(root) = &mut schema
            && !writer.definitions.is_empty()
        {
            root.insert("$defs".to_owned(), Value::Object(writer.definitions.into_iter().collect()));
        }
        Ok(Lowered {
            schema: Some(schema),
            enforcement: self.enforcement(),
            shown: Some(Shown::Outline(outline(&form))),
            lift: writer.lift,
            losses: losses(writer.losses),
        })
    }
}

/// The formats that llguidance constrains to (its `lookup_format`).
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];

/// How often each form is used, for those that are worth a definition.
fn count_uses(form: &Shared, uses: &mut HashMap<*const Form, usize>) {
    let count = uses.entry(Rc::as_ptr(form)).or_insert(0);
    *count += 1;
    if *count > 1 {
        return;
    }
    for alternative in &form.alternatives {
        match alternative {
            Alternative::Array(array) => {
                array.prefix.iter().chain(&array.items).for_each(|form| count_uses(form, uses))
            }
            Alternative::Object(object) => {
                object.properties.iter().for_each(|property| count_uses(&property.form, uses));
                object.extras.iter().for_each(|extra| count_uses(&extra.form, uses));
            }
            _ => {}
        }
    }
}

struct Writer {
    caps: Caps,
    uses: HashMap<*const Form, usize>,
    /// The definitions of shared forms.
    defined: HashMap<*const Form, String>,
    definitions: BTreeMap<String, Value>,
    lift: Vec<LiftOp>,
    losses: std::collections::BTreeSet<Receipt>,
}

impl Writer {
    /// Writes a form that stands at a JSON Pointer of the lowered schema.
    fn form(&mut self, form: &Shared, order: &Order, at: String) -> Value {
        let place = Rc::as_ptr(form);
        let shared = order.is_empty()
            && !at.is_empty()
            && self.uses.get(&place).is_some_and(|uses| *uses > 1)
            && form.alternatives.iter().any(is_large);
        if !shared {
            return self.inline(form, order, at);
        }
        let name = match self.defined.get(&place) {
            Some(name) => name.clone(),
            None => {
                let name = format!("d{}", self.defined.len() + 1);
                self.defined.insert(place, name.clone());
                let schema = self.inline(form, order, format!("/$defs/{name}"));
                self.definitions.insert(name.clone(), schema);
                name
            }
        };
        json!({"$ref": format!("#/$defs/{name}")})
    }

    fn inline(&mut self, form: &Shared, order: &Order, at: String) -> Value {
        match form.alternatives.as_slice() {
            [one] => self.alternative(one, order, at),
            several => {
                let branches = several.iter().enumerate();
                let branches =
                    branches.map(|(index, one)| self.alternative(one, order, format!("{at}/anyOf/{index}")));
                json!({"anyOf": branches.collect::<Vec<_>>()})
            }
        }
    }

    fn alternative(&mut self, alternative: &Alternative, order: &Order, at: String) -> Value {
        match alternative {
            Alternative::Any(origin) => self.any(origin),
            Alternative::Literals(values) => match values.as_slice() {
                [one] => json!({"const": one}),
                _ => json!({"enum": values}),
            },
            Alternative::Null => json!({"type": "null"}),
            Alternative::Boolean => json!({"type": "boolean"}),
            Alternative::Number(number) => write_number(number),
            Alternative::String(string) => self.string(string),
            Alternative::Array(array) => self.array(array, order, at),
            Alternative::Object(object) => self.object(object, order, at),
        }
    }

    /// Any value, two levels deep.
    fn any(&mut self, origin: &str) -> Value {
        self.tightened(origin, "maxLength");
        const NAME: &str = "any";
        if !self.definitions.contains_key(NAME) {
            let scalar = json!({"anyOf": [
                {"type": "string", "maxLength": self.caps.text},
                {"type": "number"}, {"type": "boolean"}, {"type": "null"},
            ]});
            let inner = json!({"$ref": "#/$defs/scalar"});
            let any = json!({"anyOf": [
                inner,
                {"type": "array", "items": inner, "maxItems": self.caps.items},
                {
                    "type": "object", "patternProperties": {short_name(): inner},
                    "additionalProperties": false, "maxProperties": self.caps.items,
                },
            ]});
            self.definitions.insert("scalar".to_owned(), scalar);
            self.definitions.insert(NAME.to_owned(), any);
        }
        json!({"$ref": format!("#/$defs/{NAME}")})
    }

    fn string(&mut self, form: &StringForm) -> Value {
        let mut out = Map::from_iter([("type".to_owned(), json!("string"))]);
        if form.min > 0 {
            out.insert("minLength".to_owned(), json!(form.min));
        }
        if let Some(max) = self.caps.string(form) {
            if form.max.is_none_or(|original| max < original) {
                self.tightened(&form.origin, "maxLength");
            }
            out.insert("maxLength".to_owned(), json!(max));
        }
        if let Some(format) = &form.format {
            if FORMATS.contains(&format.as_str()) {
                out.insert("format".to_owned(), json!(format));
            } else {
                self.losses.insert((form.origin.clone(), "format".to_owned(), LossKind::Unenforced));
            }
        }
        match form.patterns.as_slice() {
            [] => {}
            [one] => {
                out.insert("pattern".to_owned(), json!(one));
            }
            several => {
                let several = several.iter().map(|pattern| json!({"type": "string", "pattern": pattern}));
                out.insert("allOf".to_owned(), several.collect());
            }
        }
        Value::Object(out)
    }

    fn array(&mut self, form: &ArrayForm, order: &Order, at: String) -> Value {
        let mut out = Map::from_iter([("type".to_owned(), json!("array"))]);
        if !form.prefix.is_empty() {
            let prefix = form.prefix.iter().enumerate().map(|(index, form)| {
                self.form(form, &order.below(&Segment::Index(index)), format!("{at}/prefixItems/{index}"))
            });
            out.insert("prefixItems".to_owned(), prefix.collect());
        }
        let items = match &form.items {
            // No dependency names an item of an open list.
            Some(form) => self.form(form, &Order::default(), format!("{at}/items")),
            None => json!(false),
        };
        out.insert("items".to_owned(), items);
        if form.min > 0 {
            out.insert("minItems".to_owned(), json!(form.min));
        }
        let max = self.caps.array(form);
        if form.max.is_none_or(|original| max < original) {
            self.tightened(&form.origin, "maxItems");
        }
        out.insert("maxItems".to_owned(), json!(max));
        Value::Object(out)
    }

    fn object(&mut self, form: &ObjectForm, order: &Order, at: String) -> Value {
        let Members { names, required, extras } = self.members(form);
        let declared: Vec<&str> = names.iter().map(|index| form.properties[*index].name.as_str()).collect();
        let sorted = order.sorted(&declared);
        let mut properties = Map::new();
        let by_name: HashMap<&str, &Property> =
            form.properties.iter().map(|property| (property.name.as_str(), property)).collect();
        for name in sorted.as_ref().unwrap_or(&declared) {
            let Some(property) = by_name.get(name) else { continue };
            let step = name.replace('~', "~0").replace('/', "~1");
            let below = order.below(&Segment::Key((*name).to_owned()));
            let schema = self.form(&property.form, &below, format!("{at}/properties/{step}"));
            properties.insert((*name).to_owned(), schema);
        }
        if sorted.is_some() {
            let declared = declared.iter().map(|name| (*name).to_owned()).collect();
            self.lift.push(LiftOp { at: at.clone(), lift: Lift::Reorder(declared) });
        }
        let mut out = Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), Value::Object(properties)),
        ]);
        if !required.is_empty() {
            out.insert("required".to_owned(), json!(required));
        }
        let mut rest = json!(false);
        if extras > 0 {
            let mut patterns = Map::new();
            for extra in &form.extras {
                match &extra.pattern {
                    Some(pattern) => {
                        let schema =
                            self.form(&extra.form, &Order::default(), format!("{at}/additionalProperties"));
                        patterns.insert(pattern.clone(), schema);
                    }
                    // llguidance applies a pattern to the named members as well.
                    None if form.properties.is_empty() => {
                        let schema =
                            self.form(&extra.form, &Order::default(), format!("{at}/additionalProperties"));
                        patterns.insert(short_name(), schema);
                    }
                    None => {
                        rest =
                            self.form(&extra.form, &Order::default(), format!("{at}/additionalProperties"));
                    }
                }
            }
            out.insert("patternProperties".to_owned(), Value::Object(patterns));
            let least = form.min.max(required.len() as u64);
            if least > required.len() as u64 {
                out.insert("minProperties".to_owned(), json!(least));
            }
            out.insert("maxProperties".to_owned(), json!(required.len() as u64 + extras));
        }
        out.insert("additionalProperties".to_owned(), rest);
        Value::Object(out)
    }

    /// Which members an object may have. llguidance counts members only where all that are named are required, so
    /// bounds on their number are met here.
    fn members(&mut self, form: &ObjectForm) -> Members {
        let fixed = form.properties.iter().filter(|property| property.required).count() as u64;
        let spare = form.max.map_or(u64::MAX, |max| max.saturating_sub(fixed));
        let mut needed = form.min.saturating_sub(fixed);
        let extras = self.caps.extras(form);
        // Optional members and unnamed ones do not go together when they are counted.
        let optional = form.properties.len() as u64 - fixed;
        let all_required = extras > 0 && optional > 0 && (form.min > fixed || optional <= spare);
        let mut names = Vec::new();
        let mut required = Vec::new();
        let mut taken = 0;
        for (index, property) in form.properties.iter().enumerate() {
            if !property.required {
                if taken >= spare {
                    self.tightened(&form.origin, "properties");
                    continue;
                }
                taken += 1;
            }
            names.push(index);
            if property.required {
                required.push(property.name.clone());
            } else if all_required || needed > 0 {
                self.tightened(&form.origin, "required");
                needed = needed.saturating_sub(1);
                required.push(property.name.clone());
            }
        }
        let extras = if names.len() == required.len() { extras } else { 0 };
        Members { names, required, extras }
    }

    fn tightened(&mut self, origin: &str, keyword: &str) {
        self.losses.insert((origin.to_owned(), keyword.to_owned(), LossKind::Tightened));
    }
}

struct Members {
    /// Indexes into the properties of the form.
    names: Vec<usize>,
    required: Vec<String>,
    /// The most members that are not named.
    extras: u64,
}

/// A pattern for names that are neither empty nor long.
fn short_name() -> String {
    format!(r"^[\x00-\x{{10FFFF}}]{{1,{MAX_NAME}}}$")
}

const fn is_large(alternative: &Alternative) -> bool {
    matches!(alternative, Alternative::Array(_) | Alternative::Object(_) | Alternative::Literals(_))
}

fn write_number(form: &NumberForm) -> Value {
    let mut out =
        Map::from_iter([("type".to_owned(), json!(if form.integer { "integer" } else { "number" }))]);
    let (mut min, mut max) = (form.min, form.max);
    if form.integer {
        // Digits without end are what a small model writes when nothing stops it.
        let safe = |bound: Option<Bound>, limit: f64| match bound {
            Some(bound) if bound.at.abs() <= MAX_SAFE => Some(bound),
            _ => Some(Bound { at: limit, exclusive: false }),
        };
        (min, max) = (safe(min, -MAX_SAFE), safe(max, MAX_SAFE));
    }
    for (bound, plain, exclusive) in
        [(min, "minimum", "exclusiveMinimum"), (max, "maximum", "exclusiveMaximum")]
    {
        if let Some(bound) = bound {
            let keyword = if bound.exclusive { exclusive } else { plain };
            out.insert(keyword.to_owned(), write_bound(bound.at));
        }
    }
    if let Some(step) = &form.multiple_of {
        out.insert("multipleOf".to_owned(), Value::Number(step.clone()));
    }
    Value::Object(out)
}

fn write_bound(at: f64) -> Value {
    if at.fract() == 0.0 && at.abs() <= MAX_SAFE { json!(at as i64) } else { json!(at) }
}
