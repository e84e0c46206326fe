use formwork::core::{Call, Capabilities, Enforcement, Fault, FaultKind, Message, Part, Role, Time};
use formwork::wire::http::Request;
use formwork::wire::http::response::Parts;
use formwork::wire::{Bytes, Decoder, Members, RequestInfo, Wire, fault_of, post, unsupported};
use serde_json::{Map, Value, json};

use crate::answer;

/// The protocol of Acme for one model.
#[derive(Debug, Clone)]
pub struct Acme {
    model: String,
    stream: bool,
    capabilities: Capabilities,
}

impl Acme {
    /// Returns the protocol for a model, with streamed answers.
    pub fn new(model: impl Into<String>) -> Self {
        let capabilities = Capabilities::new(Enforcement::Schema)
            .with_dialect("acme")
            .with_dialect("json-object")
            .with_dialect("prompt")
            .with_temperature()
            .with_seed()
            .with_late_system();
        Self { model: model.into(), stream: true, capabilities }
    }

    /// Sets whether answers are streamed (default: yes).
    #[must_use]
    pub fn with_stream(mut self, stream: bool) -> Self {
        self.stream = stream;
        self
    }
}

impl Wire for Acme {
    fn name(&self) -> &str {
        "acme"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn encode(&self, call: &Call) -> Result<Request<Bytes>, Fault> {
        if !call.tools.is_empty() || call.enforcement() == Enforcement::Tool {
            return Err(unsupported("Acme's API has no tools"));
        }
        let mut body = Map::new();
        body.insert("engine".to_owned(), json!(self.model));
        body.insert(
            "turns".to_owned(),
            call.messages.iter().map(|message| turn(message)).collect::<Result<_, _>>()?,
        );
        body.insert("stream".to_owned(), json!(self.stream));
        let mut set = |name: &str, value: Option<Value>| {
            body.extend(value.map(|value| (name.to_owned(), value)));
        };
        set(
            "shape",
            match call.enforcement() {
                Enforcement::Schema => Some(json!({"schema": call.schema()})),
                Enforcement::JsonObject => Some(json!("any object")),
                _ => None,
            },
        );
        set("heat", call.sampling.temperature.map(|heat| json!(heat)));
        set("seed", call.sampling.seed.map(|seed| json!(seed)));
        set("limit", call.max_tokens.map(|limit| json!(limit)));
        post("/v2/completions", &body, &Members::default())
    }

    fn decoder(&self, call: &Call, head: &Parts) -> Box<dyn Decoder> {
        answer::decoder(RequestInfo::new("acme", &self.model, call), head)
    }

    fn fault(&self, call: &Call, head: &Parts, body: &[u8], now: Time) -> Fault {
        let problem = answer::problem(body);
        let body_text = problem.as_ref().map_or(body, |problem| problem.as_bytes());
        // Formwork reads status, delay and request id; only the messages about a refused schema are specific to Acme.
        let mut fault = fault_of(head, body_text, call.schema().is_some(), now);
        if call.schema().is_some() && problem.is_some_and(|problem| problem.starts_with("shape not accepted"))
        {
            fault.kind = FaultKind::SchemaRefused;
        }
        fault
    }
}

fn turn(message: &Message) -> Result<Value, Fault> {
    if message.parts.iter().any(|part| matches!(part, Part::Image { .. })) {
        return Err(unsupported("Acme's API takes no pictures"));
    }
    let speaker = match message.role {
        Role::System => "system",
        Role::User | Role::Tool => "user",
        Role::Assistant => "engine",
    };
    Ok(json!({"speaker": speaker, "says": message.text()}))
}
