use formwork_core::{Capabilities, Enforcement, ModelSettings};
use formwork_wire::Members;

/// The codec of the chat API for one model. The transport adds the server's address and the key.
///
/// The capabilities are enforced schemas in the dialect `cohere`, the dialects `json-object` and `prompt`, temperature, top-p
/// and seed.
///
/// ```
/// use formwork_cohere::Cohere;
/// use formwork_wire::{Members, Wire};
///
/// let wire = Cohere::new("command-a-03-2025");
/// assert_eq!(wire.model(), "command-a-03-2025");
/// assert_eq!(wire.capabilities().dialects, ["cohere", "json-object", "prompt"]);
/// ```
#[must_use]
#[derive(Debug, Clone, PartialEq)]
pub struct Cohere {
    pub(crate) model: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) stream: bool,
    pub(crate) extra: Members,
}

impl Cohere {
    /// Returns the codec for `model`, for example `command-a-03-2025`.
    pub fn new(model: impl Into<String>) -> Self {
        let capabilities = Capabilities::new(Enforcement::Schema)
            .with_tools()
            .with_required_tools()
            .with_dialect("cohere")
            .with_dialect("json-object")
            .with_dialect("prompt")
            .with_temperature()
            .with_top_p()
            .with_seed();
        Self { model: model.into(), capabilities, stream: true, extra: Members::default() }
    }

    formwork_core::setters! {
        /// Sets the capabilities of the model, dialects included (default: schemas, temperature, top-p and seed).
        pub fn with_capabilities(capabilities: Capabilities);

        /// Sets whether answers are streamed as server-sent events (default: `true`).
        pub const fn with_stream(stream: bool);

        /// Sets additional properties of the request body, for example `safety_mode` (default: none). They replace properties of
        /// the same name.
        pub fn with_extra(extra: impl Into<Members>);
    }

    /// Sets the settings of the model (default: none). Set the additional properties and the capabilities first.
    pub fn with_settings(mut self, settings: &ModelSettings) -> Self {
        self.extra = self.extra.with_settings("cohere", settings, &mut self.capabilities);
        self
    }

    /// Returns the name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }
}
