use super::Gguf;
use crate::LocalError;

/// The supported families of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// Rotates neighbouring pairs (NORM in llama.cpp).
    Llama,
    /// Rotates the two halves of a head (NEOX), and has biases on queries, keys and values.
    Qwen2,
}

/// The hyperparameters of a model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelConfig {
    pub(crate) family: Family,
    pub(crate) layers: usize,
    pub(crate) hidden: usize,
    pub(crate) feed_forward: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_dim: usize,
    /// The number of rotated values of a head.
    pub(crate) rope_dim: usize,
    pub(crate) rope_base: f32,
    /// The epsilon of RMS norms.
    pub(crate) epsilon: f32,
    /// The maximum number of tokens of the model's training.
    pub(crate) context: usize,
    pub(crate) vocabulary: usize,
}

impl ModelConfig {
    /// Reads the hyperparameters from a file's metadata.
    pub(crate) fn read(gguf: &Gguf) -> Result<Self, LocalError> {
        let architecture = gguf.text("general.architecture").unwrap_or("unknown");
        let family = match architecture {
            "llama" => Family::Llama,
            "qwen2" => Family::Qwen2,
            other => {
                let reason = format!("the architecture `{other}` is not supported, only llama and qwen2 are");
                return Err(gguf.error(reason));
            }
        };
        let key = |name: &str| format!("{architecture}.{name}");
        let number = |name: &str, most: usize| {
            let key = key(name);
            match gguf.number(&key) {
                Some(number) if (1..=most).contains(&number) => Ok(number),
                Some(number) => Err(gguf.error(format!("damaged: `{key}` is {number}"))),
                None => Err(gguf.error(format!("damaged: `{key}` is missing"))),
            }
        };
        let scaling = gguf.text(&key("rope.scaling.type")).unwrap_or("none");
        if scaling != "none" || gguf.has("rope_freqs.weight") {
            return Err(
                gguf.error("the model scales its rotary positions (rope scaling), which is not supported")
            );
        }
        if gguf.number(&key("expert_count")).is_some_and(|experts| experts > 0) {
            return Err(gguf.error("a mixture of experts is not supported"));
        }
        // The bounds are far above any model that runs on a CPU; they prevent overflows of products.
        let hidden = number("embedding_length", 1 << 17)?;
        let heads = number("attention.head_count", 1 << 12)?;
        let kv_heads = match gguf.number(&key("attention.head_count_kv")) {
            Some(_) => number("attention.head_count_kv", heads)?,
            None => heads,
        };
        let head_dim = match gguf.number(&key("attention.key_length")) {
            Some(_) => number("attention.key_length", 1 << 12)?,
            None => hidden / heads,
        };
        let rope_dim = match gguf.number(&key("rope.dimension_count")) {
            Some(_) => number("rope.dimension_count", head_dim)?,
            None => head_dim,
        };
        if gguf.number(&key("attention.value_length")).is_some_and(|length| length != head_dim) {
            return Err(gguf.error("keys and values of different lengths are not supported"));
        }
        if !heads.is_multiple_of(kv_heads) || head_dim == 0 || !rope_dim.is_multiple_of(2) {
            let reason = format!(
                "damaged: {heads} heads, {kv_heads} of keys and values, of {head_dim} numbers, {rope_dim} rotated"
            );
            return Err(gguf.error(reason));
        }
        let rope_base = gguf.fraction(&key("rope.freq_base")).unwrap_or(10_000.0);
        let epsilon = gguf.fraction(&key("attention.layer_norm_rms_epsilon")).unwrap_or(1e-5);
        if !(rope_base.is_finite() && rope_base > 0.0 && epsilon.is_finite() && epsilon >= 0.0) {
            return Err(gguf.error("damaged: the base of the rotary positions or the norms' epsilon"));
        }
        Ok(Self {
            family,
            layers: number("block_count", 1 << 10)?,
            hidden,
            feed_forward: number("feed_forward_length", 1 << 18)?,
            heads,
            kv_heads,
            head_dim,
            rope_dim,
            rope_base,
            epsilon,
            context: number("context_length", 1 << 24)?,
            vocabulary: gguf.list("tokenizer.ggml.tokens").map_or(0, <[_]>::len),
        })
    }

    /// Returns the length of all queries of a token.
    pub(crate) const fn query_width(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Returns the length of all keys, or all values, of a token.
    pub(crate) const fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }
}
