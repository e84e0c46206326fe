//! The Converse API as a codec.

use formwork_core::{Call, Capabilities, Fault, Time};
use formwork_wire::http::Request;
use formwork_wire::http::response::Parts;
use formwork_wire::{Bytes, Decoder, Deltas, Whole, Wire};

use crate::{API, Bedrock, decode, encode, fault};

impl Wire for Bedrock {
    fn name(&self) -> &str {
        API
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn encode(&self, call: &Call) -> Result<Request<Bytes>, Fault> {
        encode::request(self, call)
    }

    fn decoder(&self, call: &Call, _: &Parts) -> Box<dyn Decoder> {
        let carrier = encode::carrier(self, call);
        let input_tokens = formwork_core::Usage::estimate(call, 0).input_tokens;
        Box::new(Whole::new(move |body: &[u8], out: &mut Deltas| {
            decode::document(body, carrier.as_deref(), input_tokens, out)
        }))
    }

    fn fault(&self, call: &Call, head: &Parts, body: &[u8], now: Time) -> Fault {
        fault::of_response(self, call, head, body, now)
    }
}
