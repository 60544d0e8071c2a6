//! The task that reads the engine's and the device's state, ten times a second
//! unless the policy says otherwise.
//!
//! A page that does not come leaves the last state to grow stale, from when on the
//! gate alone decides. Decisions are made anew at each turn, whether a page came
//! or not, so that staleness is noticed on time.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;
use tidegate_policy::device_page;
use tidegate_policy::engine_page::{self, Ask, UnknownEngine};
use tidegate_policy::sampler::Sampler;
use tidegate_policy::state::{DeviceSample, EngineSample};
use tokio::time::{sleep, sleep_until};
use tracing::{debug, info, warn};

use super::args::PolicyConfig;
use super::layer::Layer;
use crate::cli::sparing::Sparing;
use crate::proxy::engine::EngineUrl;
use crate::scrape::page::{Fetch, PageError, PageUrl};

/// Where the state is read.
#[derive(Debug)]
pub(crate) struct Sampling {
    engine: Fetch,
    device: Device,
}

/// Where the device's state is read.
#[derive(Debug)]
enum Device {
    /// Nowhere.
    Unknown,
    /// From a DCGM exporter's page, by the GPU's number on it.
    Dcgm(Box<Fetch>, u32),
    /// From NVIDIA's library.
    #[cfg(feature = "nvml")]
    Nvml(super::nvml::Device),
}

#[derive(Debug, Error)]
enum NoState {
    #[error(transparent)]
    Page(#[from] PageError),
    #[error(transparent)]
    Engine(#[from] UnknownEngine),
}

impl Sampling {
    /// Prepares; reads nothing yet.
    ///
    /// # Errors
    /// For `https`, when the system's trusted certificates cannot be read.
    pub(crate) fn new(config: &PolicyConfig, engine: &EngineUrl) -> io::Result<Self> {
        let page = config.engine_metrics.clone();
        let page = page.unwrap_or_else(|| PageUrl::of(engine.clone(), "/metrics"));
        let device = match &config.dcgm {
            Some(page) => Device::Dcgm(Box::new(Fetch::new(page.clone())?), config.gpu),
            #[cfg(feature = "nvml")]
            None => super::nvml::Device::new(config.gpu).map_or_else(
                |error| {
                    info!(%error, gpu = config.gpu, "no state of the GPU");
                    Device::Unknown
                },
                Device::Nvml,
            ),
            #[cfg(not(feature = "nvml"))]
            None => Device::Unknown,
        };
        Ok(Self {
            engine: Fetch::new(page)?,
            device,
        })
    }

    /// The engine's sample, and the device's where that is known.
    async fn read(&self, time: Duration) -> Result<(EngineSample, DeviceSample), NoState> {
        let (page, device) = tokio::join!(self.engine.text(time), self.device.read(time));
        Ok((engine_page::read(&page?, Ask::default())?, device))
    }
}

impl Device {
    async fn read(&self, time: Duration) -> DeviceSample {
        match self {
            Device::Unknown => DeviceSample::default(),
            Device::Dcgm(page, gpu) => match page.text(time).await {
                Ok(text) => device_page::read(&text).remove(gpu).unwrap_or_default(),
                Err(error) => {
                    debug!(%error, "no state of the GPU");
                    DeviceSample::default()
                }
            },
            #[cfg(feature = "nvml")]
            Device::Nvml(device) => device.read(),
        }
    }
}

/// Samples until it is dropped; cancel safe.
pub(crate) async fn sample(layer: Arc<Layer>, from: Sampling) {
    let warnings = Sparing::default();
    let mut followed = None;
    let mut known = false;
    loop {
        let (preallocates, every, stale_after) = layer.sampling();
        let due = tokio::time::Instant::now() + every;
        let mut sampler = match followed.take() {
            Some((of, sampler)) if of == preallocates => sampler,
            _ => Sampler::new(preallocates, layer.now()),
        };
        let mut read = pin!(from.read(stale_after.max(every)));
        let read = loop {
            tokio::select! {
                read = &mut read => break read,
                () = sleep(every) => layer.observe(),
            }
        };
        match read {
            Ok((engine, device)) => {
                layer
                    .state
                    .publish(sampler.observe(layer.now(), engine, device));
                if !std::mem::replace(&mut known, true) {
                    info!("the engine's state is known: the policy decides");
                }
            }
            Err(error) => {
                known = false;
                match warnings.due(Instant::now()) {
                    Some(left_out) => {
                        warn!(%error, left_out, "no state of the engine: once it is stale the gate alone decides");
                    }
                    None => debug!(%error, "no state of the engine"),
                }
            }
        }
        followed = Some((preallocates, sampler));
        layer.observe();
        sleep_until(due).await;
    }
}
