use super::{Chunk, Exchange};

/// A change of a recorded exchange, for tests of unusual responses.
///
/// ```
/// use formwork_wire::cassette::{Cassette, Mutation};
///
/// fn cut_off(recorded: Cassette) -> Cassette {
///     recorded.with_mutation(0, &Mutation::Truncate(40))
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mutation {
    /// Ends the body before this byte, as if the server had closed the connection.
    Truncate(usize),
    /// Replaces the string in every `finish_reason`, `done_reason` and `stop_reason`.
    Finish(String),
    /// Makes the exchange match requests with any schema, as if the server ignored schemas.
    DropSchema,
}

impl Mutation {
    pub(super) fn apply(&self, exchange: &mut Exchange) {
        match self {
            Self::Truncate(at) => {
                let mut left = *at;
                exchange.chunks = std::mem::take(&mut exchange.chunks)
                    .into_iter()
                    .map_while(|chunk| {
                        let length = chunk.bytes().len().min(left);
                        left -= length;
                        (length > 0).then(|| Chunk::new(chunk.after_ms, &chunk.bytes()[..length]))
                    })
                    .collect();
            }
            Self::Finish(reason) => {
                // The chunks are joined because a property may span several of them.
                let body: Vec<u8> = exchange.chunks.iter().flat_map(|chunk| chunk.bytes().to_vec()).collect();
                let body = with_finish(&String::from_utf8_lossy(&body), reason);
                exchange.chunks = vec![Chunk::new(0, body.as_bytes())];
            }
            Self::DropSchema => exchange.schema_dropped = true,
        }
    }
}

fn with_finish(body: &str, reason: &str) -> String {
    let reason = serde_json::Value::from(reason).to_string();
    ["\"finish_reason\"", "\"done_reason\"", "\"stop_reason\""].iter().fold(body.to_owned(), |body, name| {
        let mut parts = body.split(name);
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            out.push_str(name);
            let value = part.trim_start().strip_prefix(':').map(str::trim_start);
            match value.and_then(|value| value.strip_prefix('"')?.split_once('"')) {
                Some((_, rest)) => {
                    out.push(':');
                    out.push_str(&reason);
                    out.push_str(rest);
                }
                None => out.push_str(part),
            }
        }
        out
    })
}
