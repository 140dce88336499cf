//! safetensors, as `particles.safetensors` and checkpoints are read, and JSON, as `model.json` and manifests are.
//! Build with `--features root`.

#![no_main]

use fedstein::experiment::finished::ModelCard;
use libfuzzer_sys::fuzz_target;
use safetensors::SafeTensors;

fuzz_target!(|data: &[u8]| {
    if let Ok(tensors) = SafeTensors::deserialize(data) {
        for (name, view) in tensors.tensors() {
            let items = view.shape().iter().product::<usize>();
            assert_eq!(items * view.dtype().bitsize() / 8, view.data().len(), "{name}");
        }
    }
    let _ = serde_json::from_slice::<ModelCard>(data).map(|card| card.check());
});
