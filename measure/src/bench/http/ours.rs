//! Formwork's side, with the code of the README and default settings.

use std::sync::Arc;

use formwork_core::{Inline, SharedProvider};
use formwork_extract::Extractor;
use formwork_http::{HttpTransport, Key};

use super::wires::Wire;
use crate::Failure;
use crate::bench::oracle::{KEY, SYSTEM, Score, schema};

pub(super) fn extractor(wire: &Wire, address: &str, stream: bool) -> Result<Extractor<Score>, Failure> {
    extractor_of([provider(wire, address, stream, 64 << 20)?])
}

pub(super) fn extractor_of(
    providers: impl IntoIterator<Item = SharedProvider>,
) -> Result<Extractor<Score>, Failure> {
    let contract = formwork_schema::contract_for(Arc::new(Inline::new("ai_score", schema()?)));
    let mut builder = Extractor::for_contract(contract.map_err(|error| error.message)?).with_system(SYSTEM);
    for provider in providers {
        builder = builder.with_target(provider);
    }
    Ok(builder.build()?)
}

pub(super) fn provider(
    wire: &Wire,
    address: &str,
    stream: bool,
    most: usize,
) -> Result<SharedProvider, Failure> {
    let transport = HttpTransport::new(&format!("{address}/{}{}", wire.name, wire.base))?;
    let transport = transport.with_key(wire.auth, Key::new("the benchmark", KEY)?)?;
    Ok((wire.provider)(transport.with_max_body_bytes(most), stream))
}
