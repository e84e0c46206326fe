use super::{Chunk, Exchange};

/// A change of a recorded exchange, to see what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mutation {
    /// The body ends before this byte, as if the connection had been closed.
    Truncate(usize),
    /// Another reason to stop, in place of every `finish_reason`, `done_reason` and `stop_reason` that is a string.
    Finish(String),
    /// The server has not seen the schema: the answer is the same without it.
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
                // In one piece: the member may lie across chunks.
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
