use serde_json::{Map, Value};

/// The output under review, with the data that criteria read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Material {
    /// The output.
    pub output: Value,
    /// The task that it was made for; empty if nobody says.
    pub task: String,
    /// Data that criteria may need, by name.
    pub data: Map<String, Value>,
}

impl Material {
    /// An output: JSON, or a text.
    pub fn new(output: impl Into<Value>) -> Self {
        Self { output: output.into(), ..Self::default() }
    }

    /// Sets the task that it was made for (default: empty).
    #[must_use]
    pub fn with_task(mut self, task: impl Into<String>) -> Self {
        self.task = task.into();
        self
    }

    /// Adds data of this name (default: none); null is as good as none.
    #[must_use]
    pub fn with_data(mut self, name: impl Into<String>, data: Value) -> Self {
        self.data.insert(name.into(), data);
        self
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
