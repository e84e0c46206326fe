use async_trait::async_trait;
use formwork_core::{Call, Capabilities, Enforcement, Fault, Time};
use formwork_wire::http::Request;
use formwork_wire::http::response::Parts;
use formwork_wire::{Auth, Bytes, Decoder, Transport, Wire};
use serde_json::{Map, Value};

use crate::answer;
use crate::asked::RequestInfo;
use crate::capabilities::enforcing;
use crate::probe::{self, Identity, Probed};
use crate::{Api, KeepAlive, Think, fault, request};

/// The native protocol of Ollama for one model.
///
/// It promises schemas enforced while decoding, temperature, top-p and a seed, and takes the dialects `ollama`,
/// `json-object` and `prompt`. Tools are not promised.
#[derive(Debug, Clone, PartialEq)]
pub struct Ollama {
    pub(crate) model: String,
    pub(crate) api: Api,
    pub(crate) num_ctx: Option<u32>,
    pub(crate) keep_alive: Option<KeepAlive>,
    pub(crate) think: Option<Think>,
    pub(crate) options: Map<String, Value>,
    pub(crate) stream: bool,
    capabilities: Capabilities,
}

/// The limit of tokens for answers that the caller sets none for: Ollama itself has none, and a model that repeats itself would
/// go on for as long as the server runs.
const DEFAULT_MAX_TOKENS: u32 = 8192;

impl Ollama {
    /// How the server is told the key, where it wants one.
    pub const AUTH: Auth = Auth::BEARER;

    /// This model, as `ollama list` shows it, over `/api/chat`.
    pub fn new(model: impl Into<String>) -> Self {
        let capabilities = Capabilities::new(Enforcement::Schema)
            .with_temperature()
            .with_top_p()
            .with_seed()
            .with_late_system()
            .with_default_max_tokens(DEFAULT_MAX_TOKENS);
        Self {
            model: model.into(),
            api: Api::Chat,
            num_ctx: None,
            keep_alive: None,
            think: None,
            options: Map::new(),
            stream: true,
            capabilities: enforcing(capabilities, Enforcement::Schema),
        }
    }

    /// Uses `/api/generate` (default: `/api/chat`), for models without a chat template.
    ///
    /// System messages at the beginning become `system`. A single user message is the prompt as it stands; a longer
    /// dialogue is written out, each turn after `User:`, `Assistant:` or `System:`. What users say could look like such
    /// a turn; where that matters, use the chat API.
    #[must_use]
    pub fn with_generate(mut self) -> Self {
        self.api = Api::Generate;
        self.capabilities.late_system = false;
        self
    }

    /// Sets the size of the context in tokens, for prompt and answer together (default: what each call needs).
    ///
    /// Without it each call asks for what it needs: an upper bound of the prompt's tokens plus those of the answer (2048
    /// where nothing bounds it), rounded up to a power of two from 4096 on. Ollama loads a model anew whenever this
    /// number changes; where short and long prompts take turns, set the greater one here.
    ///
    /// The bound is half the prompt's bytes, plus half a token more for each digit and punctuation mark, plus 16 for
    /// each message, 64 for the template's own words and 2048 for each image. No token is shorter than a byte; words
    /// have about four bytes a token, and what has one (digits, JSON) is counted so. Where the bound fails, in text
    /// that is made of rare characters, the call fails with words that name `num_ctx`, and nothing is cut.
    #[must_use]
    pub const fn with_num_ctx(mut self, tokens: u32) -> Self {
        self.num_ctx = Some(tokens);
        self.capabilities.context_tokens = Some(tokens);
        self
    }

    /// Keeps the model loaded for so long after a call: `"5m"`, seconds, a [`Duration`](std::time::Duration). The
    /// server's default is five minutes.
    #[must_use]
    pub fn with_keep_alive(mut self, keep_alive: impl Into<KeepAlive>) -> Self {
        self.keep_alive = Some(keep_alive.into());
        self
    }

    /// Sets whether the model thinks, or how much (`"low"`) (default: nothing is sent).
    ///
    /// Nothing is sent without it, and then a model that can think does. Anything but `false` is refused with status 400
    /// for one that cannot.
    ///
    /// Where a schema is sent, the chat API runs a model that thinks twice: unconstrained until it begins to answer, then again
    /// with the schema. If it does not think after all, the unconstrained answer is taken. `false` avoids both where
    /// the chat template has a place for thoughts; but a model with a parser of its own in Ollama is then never
    /// constrained (read in the source of 0.17.4). No setting is right for all, so [`examine`](Self::examine) tries
    /// `false`, and [`with_probed`](Self::with_probed) sets it where it works.
    #[must_use]
    pub fn with_think(mut self, think: impl Into<Think>) -> Self {
        self.think = Some(think.into());
        self
    }

    /// Sets further options of the model (default: none): `top_k`, `repeat_penalty`, `stop`. The members that a call or
    /// [`with_num_ctx`](Self::with_num_ctx) sets goes before them.
    #[must_use]
    pub fn with_options(mut self, options: Map<String, Value>) -> Self {
        self.options = options;
        self
    }

    /// Whether answers are streamed, as they are by default.
    #[must_use]
    pub const fn with_stream(mut self, stream: bool) -> Self {
        self.stream = stream;
        self
    }

    /// Takes over what a probe found (default: the promises of its version): its capabilities, and no thinking where that
    /// has schemas enforced from the start, unless it is set already.
    #[must_use]
    pub fn with_probed(mut self, probed: &Probed) -> Self {
        self.capabilities = probed.capabilities.clone();
        if probed.better_without_thinking && self.think.is_none() {
            self.think = Some(Think::Switch(false));
        }
        self
    }

    /// The model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Asks the server what it is and what it enforces; [`probe`](Wire::probe) is this without the report.
    ///
    /// It costs a GET of `/api/version`, a POST of `/api/show`, and one call of at most 16 tokens that shows whether a
    /// schema is enforced; if it is not, another one for `format: "json"`. A model that thinks is tried without thinking
    /// first and then as it is, with at most 512 tokens: what is verified is what calls are made with. The model is loaded
    /// for it, which may take minutes. A model whose format has no enforcement in Ollama (MLX, safetensors) is not called
    /// at all.
    ///
    /// # Errors
    /// A [`Fault`], if the server is not there, or the model not on it.
    pub async fn examine(&self, transport: &dyn Transport) -> Result<Probed, Fault> {
        probe::examine(self, transport).await
    }

    /// Returns the server's version and the model's digest, for two GETs; `None` if the server does not say both.
    ///
    /// # Errors
    /// A [`Fault`], if the server is not there.
    pub async fn identity(&self, transport: &dyn Transport) -> Result<Option<Identity>, Fault> {
        probe::identity(self, transport).await
    }

    fn asked(&self, call: &Call) -> RequestInfo {
        RequestInfo::new(&self.model, call)
    }
}

#[async_trait]
impl Wire for Ollama {
    fn name(&self) -> &str {
        "ollama"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn encode(&self, call: &Call) -> Result<Request<Bytes>, Fault> {
        request::encode(self, call)
    }

    fn decoder(&self, call: &Call, head: &Parts) -> Box<dyn Decoder> {
        answer::decoder(self.asked(call), self.stream, head)
    }

    fn fault(&self, call: &Call, head: &Parts, body: &[u8], now: Time) -> Fault {
        fault::of_response(&self.asked(call), head, body, now)
    }

    fn transport_fault(&self, call: &Call, fault: Fault) -> Fault {
        fault::of_transport(&self.asked(call), fault)
    }

    async fn probe(&self, transport: &dyn Transport) -> Result<Capabilities, Fault> {
        Ok(self.examine(transport).await?.capabilities)
    }
}
