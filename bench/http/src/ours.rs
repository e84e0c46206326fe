//! Formwork's side, with the code of the README and default settings.

use std::sync::Arc;

use formwork_core::Inline;
use formwork_extract::Extractor;
use formwork_http::{HttpTransport, Key};
use formwork_openai::OpenAi;
use formwork_wire::{Auth, Http};

use crate::Failure;
use crate::oracle::{KEY, MODEL, SYSTEM, Score, schema};

pub(crate) fn extractor(base_url: &str, stream: bool) -> Result<Extractor<Score>, Failure> {
    let contract = formwork_schema::contract_for(Arc::new(Inline::new("ai_score", schema()?)));
    let contract = contract.map_err(|error| error.message)?;
    let provider = provider(base_url, stream, 64 << 20)?;
    Ok(Extractor::for_contract(contract).with_target(Arc::new(provider)).with_system(SYSTEM).build()?)
}

pub(crate) fn provider(base_url: &str, stream: bool, most: usize) -> Result<Http<OpenAi>, Failure> {
    let key = Key::new("the benchmark", KEY)?;
    let transport = HttpTransport::new(base_url)?.with_key(Auth::BEARER, key)?.with_max_body_bytes(most);
    Ok(Http::new(OpenAi::new(MODEL).with_stream(stream), Arc::new(transport)))
}
