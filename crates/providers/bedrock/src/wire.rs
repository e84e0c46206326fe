//! The Converse API as a codec.

use formwork_core::{Call, Capabilities, Fault};
use formwork_wire::http::Request;
use formwork_wire::http::response::Parts;
use formwork_wire::{Bytes, Decoder, Deltas, Framed, RequestInfo, Whole, Wire, media_type};

use crate::frames::Frames;
use crate::{API, Bedrock, decode, encode};

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

    fn decoder(&self, call: &Call, head: &Parts) -> Box<dyn Decoder> {
        let request = self.request_info(call);
        if media_type(head) == Some("application/vnd.amazon.eventstream") {
            return Box::new(Framed::<Frames, _>::new(decode::StreamReader::new(request)));
        }
        let read = move |body: &[u8], out: &mut Deltas| decode::document(request.clone(), body, out);
        Box::new(Whole::new(read))
    }

    fn request_info(&self, call: &Call) -> RequestInfo {
        RequestInfo::new(API, &self.model, call).with_carrier(encode::carrier(self, call))
    }
}
