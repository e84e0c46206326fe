use super::ModelConfig;

/// The keys and values of computed tokens, so that each token is computed once.
///
/// The tokens of each layer and head are contiguous. All memory is allocated at once; the operating system provides it
/// when it is written.
#[derive(Debug)]
pub(crate) struct Cache {
    layers: Vec<Layer>,
    head_dim: usize,
    capacity: usize,
    length: usize,
}

#[derive(Debug)]
struct Layer {
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Cache {
    /// Creates a cache for this number of tokens.
    ///
    /// # Errors
    /// A message with the required memory, if there is not enough.
    pub(crate) fn new(config: &ModelConfig, capacity: usize) -> Result<Self, String> {
        let size = config.kv_width().saturating_mul(capacity);
        if !can_allocate(size, 2 * config.layers) {
            let bytes = size as f64 * 2.0 * config.layers as f64 * size_of::<f32>() as f64;
            return Err(format!(
                "there is no memory for a context of {capacity} tokens ({:.0} GB): ask for a shorter one",
                bytes / 1e9
            ));
        }
        let layer = || Layer { keys: vec![0.0; size], values: vec![0.0; size] };
        Ok(Self {
            layers: (0..config.layers).map(|_| layer()).collect(),
            head_dim: config.head_dim,
            capacity,
            length: 0,
        })
    }

    /// Returns the number of tokens.
    pub(crate) const fn len(&self) -> usize {
        self.length
    }

    /// Returns the maximum number of tokens.
    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Removes all tokens after the first `length`.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Adds the tokens that every layer has written; the caller ensures the capacity.
    pub(crate) fn advance(&mut self, tokens: usize) {
        self.length = (self.length + tokens).min(self.capacity);
    }

    /// Writes the keys and values of one token.
    pub(crate) fn write(&mut self, layer: usize, position: usize, keys: &[f32], values: &[f32]) {
        let (head_dim, capacity) = (self.head_dim, self.capacity);
        let layer = &mut self.layers[layer];
        for (store, row) in [(&mut layer.keys, keys), (&mut layer.values, values)] {
            for (head, part) in row.chunks_exact(head_dim).enumerate() {
                let start = (head * capacity + position) * head_dim;
                store[start..start + head_dim].copy_from_slice(part);
            }
        }
    }

    /// Returns the keys and the values of the first `count` tokens for one head.
    pub(crate) fn read(&self, layer: usize, head: usize, count: usize) -> (&[f32], &[f32]) {
        let start = head * self.capacity * self.head_dim;
        let range = start..start + count * self.head_dim;
        (&self.layers[layer].keys[range.clone()], &self.layers[layer].values[range])
    }
}

/// Returns whether there is memory for this number of vectors of this size at once. Reservations are tried first,
/// because an allocation of zeros that fails aborts the process.
fn can_allocate(size: usize, count: usize) -> bool {
    let mut reserved = Vec::new();
    (0..count).all(|_| {
        let mut one: Vec<f32> = Vec::new();
        let fits = one.try_reserve_exact(size).is_ok();
        reserved.push(one);
        fits
    })
}
