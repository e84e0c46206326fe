use serde_json::{Map, Value};

/// The output under review, with the data that criteria need.
///
/// ```
/// use formwork_review::Material;
/// use serde_json::json;
///
/// let mut material = Material { task: "Answer the customer.".into(), ..Material::new("Send the form, please.") };
/// material.data.insert("prices".into(), json!({"form": 0}));
/// assert_eq!(material.output, "Send the form, please.");
/// assert_eq!(material.data["prices"]["form"], 0);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Material {
    /// The output.
    pub output: Value,
    /// The task that the output was made for; empty if unknown.
    pub task: String,
    /// Data for criteria that [need](crate::Criterion::needs) it, by name. `null` counts as missing.
    pub data: Map<String, Value>,
}

impl Material {
    /// Creates the material of an output: any JSON value, or a text.
    pub fn new(output: impl Into<Value>) -> Self {
        Self { output: output.into(), ..Self::default() }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.data.get(name).is_some_and(|data| !data.is_null())
    }
}

impl From<Value> for Material {
    fn from(output: Value) -> Self {
        Self::new(output)
    }
}
