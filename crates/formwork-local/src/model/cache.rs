use super::Config;

/// The keys and values of the tokens that a model has seen, so that it needs to look at each token once.
///
/// For each layer and each head of keys and values the tokens lie one after another. All is allocated at once, and the
/// operating system provides the memory only where it is written.
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
    /// Room for so many tokens.
    ///
    /// # Errors
    /// How much memory that would take, where there is not that much.
    pub(crate) fn new(config: &Config, capacity: usize) -> Result<Self, String> {
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

    /// How many tokens it has.
    pub(crate) const fn len(&self) -> usize {
        self.length
    }

    /// How many tokens there is room for.
    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Forgets all tokens but the first `length`.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Takes the tokens in that every layer has written; whoever writes makes sure that there is room.
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

    /// The keys and the values of the first `count` tokens for one head, one token after another.
    pub(crate) fn read(&self, layer: usize, head: usize, count: usize) -> (&[f32], &[f32]) {
        let start = head * self.capacity * self.head_dim;
        let range = start..start + count * self.head_dim;
        (&self.layers[layer].keys[range.clone()], &self.layers[layer].values[range])
    }
}

/// Whether there is memory for so many vectors of this size at once. A vector of zeros that does not fit ends the whole
/// process, so this is tried with reservations first.
fn can_allocate(size: usize, count: usize) -> bool {
    let mut reserved = Vec::new();
    (0..count).all(|_| {
        let mut one: Vec<f32> = Vec::new();
        let fits = one.try_reserve_exact(size).is_ok();
        reserved.push(one);
        fits
    })
}
