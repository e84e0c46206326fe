//! The forward pass of llama- and qwen2-family models: f32 activations, quantised weights.

mod attention;
mod cache;
mod config;
mod gguf;
mod matrix;
mod ops;
mod tensors;

use candle_core::{Error, Result};

pub(crate) use cache::Cache;
pub(crate) use config::{Family, ModelConfig};
pub(crate) use gguf::Gguf;
pub(crate) use matrix::Matrix;
pub(crate) use tensors::Tensors;

use crate::LocalError;
use attention::attend;
use ops::{Rotation, add, rms_norm, swiglu};

/// A model's weights.
#[derive(Debug)]
pub(crate) struct Model {
    config: ModelConfig,
    embedding: Matrix,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    /// `None` if the embedding is also the output matrix (tied embeddings).
    output: Option<Matrix>,
}

#[derive(Debug)]
struct Layer {
    attention_norm: Vec<f32>,
    query: Projection,
    key: Projection,
    value: Projection,
    attention_output: Projection,
    feed_forward_norm: Vec<f32>,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
}

/// A matrix with an optional bias.
#[derive(Debug)]
struct Projection {
    weight: Matrix,
    bias: Option<Vec<f32>>,
}

impl Model {
    /// Loads all weights.
    pub(crate) fn load(tensors: &mut Tensors) -> std::result::Result<Self, LocalError> {
        let config = ModelConfig::read(tensors.gguf())?;
        let embedding = tensors.matrix("token_embd.weight", config.vocabulary, config.hidden)?;
        let mut layers = Vec::new();
        for layer in 0..config.layers {
            layers.push(Layer::load(tensors, &config, layer)?);
        }
        let norm = tensors.vector("output_norm.weight", config.hidden)?;
        let output = match tensors.gguf().has("output.weight") {
            true => Some(tensors.matrix("output.weight", config.vocabulary, config.hidden)?),
            false => None,
        };
        Ok(Self { config, embedding, layers, norm, output })
    }

    pub(crate) const fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Computes more tokens and returns the logits of the next one.
    ///
    /// # Errors
    /// An error for more tokens than the cache has room for, and for a token that is not in the vocabulary.
    pub(crate) fn forward(&self, cache: &mut Cache, tokens: &[u32]) -> Result<Vec<f32>> {
        let hidden = self.hidden(cache, tokens)?;
        let last = &hidden[hidden.len() - self.config.hidden..];
        let last = rms_norm(last, &self.norm, self.config.epsilon);
        self.output.as_ref().unwrap_or(&self.embedding).apply(&last)
    }

    /// Computes more tokens without logits, which saves a fifth of the work for a small model.
    ///
    /// # Errors
    /// The errors of [`Self::forward`].
    pub(crate) fn read(&self, cache: &mut Cache, tokens: &[u32]) -> Result<()> {
        self.hidden(cache, tokens).map(drop)
    }

    fn hidden(&self, cache: &mut Cache, tokens: &[u32]) -> Result<Vec<f32>> {
        let start = cache.len();
        if tokens.is_empty() || start + tokens.len() > cache.capacity() {
            let message = format!("{} tokens after {start} in {}", tokens.len(), cache.capacity());
            return Err(Error::msg(message));
        }
        let config = &self.config;
        let rotations: Vec<_> = (start..start + tokens.len())
            .map(|position| Rotation::at(position, config.rope_dim, config.rope_base))
            .collect();
        let mut x = self.embedding.rows(tokens)?;
        for (number, layer) in self.layers.iter().enumerate() {
            layer.forward(config, number, cache, &rotations, &mut x)?;
        }
        cache.advance(tokens.len());
        Ok(x)
    }
}

impl Layer {
    fn load(
        tensors: &mut Tensors,
        config: &ModelConfig,
        layer: usize,
    ) -> std::result::Result<Self, LocalError> {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let (hidden, feed_forward) = (config.hidden, config.feed_forward);
        let mut projection = |part: &str, rows: usize, columns: usize| {
            let bias = name(&format!("{part}.bias"));
            Ok(Projection {
                weight: tensors.matrix(&name(&format!("{part}.weight")), rows, columns)?,
                bias: match tensors.gguf().has(&bias) {
                    true => Some(tensors.vector(&bias, rows)?),
                    false => None,
                },
            })
        };
        let query = projection("attn_q", config.query_width(), hidden)?;
        let key = projection("attn_k", config.kv_width(), hidden)?;
        let value = projection("attn_v", config.kv_width(), hidden)?;
        let attention_output = projection("attn_output", hidden, config.query_width())?;
        Ok(Self {
            attention_norm: tensors.vector(&name("attn_norm.weight"), hidden)?,
            query,
            key,
            value,
            attention_output,
            feed_forward_norm: tensors.vector(&name("ffn_norm.weight"), hidden)?,
            gate: tensors.matrix(&name("ffn_gate.weight"), feed_forward, hidden)?,
            up: tensors.matrix(&name("ffn_up.weight"), feed_forward, hidden)?,
            down: tensors.matrix(&name("ffn_down.weight"), hidden, feed_forward)?,
        })
    }

    /// Adds the output of this layer for each token to `x`.
    fn forward(
        &self,
        config: &ModelConfig,
        number: usize,
        cache: &mut Cache,
        rotations: &[Rotation],
        x: &mut [f32],
    ) -> Result<()> {
        let normed = rms_norm(x, &self.attention_norm, config.epsilon);
        let mut queries = self.query.apply(&normed)?;
        let mut keys = self.key.apply(&normed)?;
        let values = self.value.apply(&normed)?;
        let start = cache.len();
        let (query, kv) = (config.query_width(), config.kv_width());
        for (row, rotation) in rotations.iter().enumerate() {
            let kv = row * kv..(row + 1) * kv;
            rotation.apply(&mut queries[row * query..][..query], config.head_dim, config.family);
            rotation.apply(&mut keys[kv.clone()], config.head_dim, config.family);
            cache.write(number, start + row, &keys[kv.clone()], &values[kv]);
        }
        let mixed = attend(config, number, cache, start, &queries);
        add(x, &self.attention_output.apply(&mixed)?);

        let normed = rms_norm(x, &self.feed_forward_norm, config.epsilon);
        let mut gate = self.gate.apply(&normed)?;
        swiglu(&mut gate, &self.up.apply(&normed)?);
        add(x, &self.down.apply(&gate)?);
        Ok(())
    }
}

impl Projection {
    fn apply(&self, input: &[f32]) -> Result<Vec<f32>> {
        let mut output = self.weight.apply(input)?;
        if let Some(bias) = &self.bias {
            add(&mut output, bias);
        }
        Ok(output)
    }
}
