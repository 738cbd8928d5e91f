"""Brings a model into memory, phase by phase, each told to the run as it ends. Imports torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from perfdoctor.errors import ModelError
from perfdoctor.local.facts import DTYPE_BYTES, Sizes
from perfdoctor.local.models import Source
from perfdoctor.local.request import Request
from perfdoctor.local.switches._switch import Plan
from perfdoctor.local.text import plain_chat

PAGE_BYTES = 4096
DTYPE_ARGUMENT = "dtype" if int(transformers.__version__.split(".")[0]) >= 5 else "torch_dtype"

Phase = Callable[[str], AbstractContextManager[None]]  # phase(name) times its body


@dataclass(frozen=True, slots=True)
class Defaults:
    """How the checkpoint wants to be sampled."""

    do_sample: bool
    temperature: float
    top_p: float
    top_k: int


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model on its device with what serving needs of its tokenizer."""

    model: Any
    tokenizer: Any
    device: str  # "cpu", "cuda:0"
    dtype: str
    end_ids: frozenset[int]  # empty for random weights, which would stop anywhere
    defaults: Defaults
    plan: Plan = field(default_factory=Plan)

    @property
    def cuda(self) -> bool:
        return self.device.startswith("cuda")

    @property
    def context(self) -> int:
        """Longest prompt and answer together, in tokens."""
        return int(getattr(self.model.config, "max_position_embeddings", None) or 1 << 30)

    @property
    def known_tokens(self) -> int:
        """Ids below this have a text; a shape's own ids go further than the stand-in tokenizer's."""
        return len(self.tokenizer)

    @property
    def pad_id(self) -> int:
        return int(self.tokenizer.pad_token_id or 0)

    @property
    def markers(self) -> tuple[int | None, int | None]:
        """Ids of `<think>` and `</think>`, None where the vocabulary lacks them."""
        vocabulary = self.tokenizer.get_vocab()
        return vocabulary.get("<think>"), vocabulary.get("</think>")

    def render(self, request: Request) -> str:
        if request.messages is None:
            return request.prompt
        if not self.tokenizer.chat_template:
            return plain_chat(request.messages)
        turns = [{"role": role, "content": text} for role, text in request.messages]
        options = {} if request.thinking is None else {"enable_thinking": request.thinking}
        return str(
            self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True, **options)
        )

    def encode(self, prompt: str) -> torch.Tensor:
        """Ids of shape (1, tokens), on the device."""
        encoded = self.tokenizer(prompt, return_tensors="pt", add_special_tokens=False)
        return encoded.input_ids.to(self.device)

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True))

    def sizes(self) -> Sizes:
        config = self.model.config.get_text_config()
        embedding, head = self.model.get_input_embeddings(), self.model.get_output_embeddings()
        heads = config.num_attention_heads
        return Sizes(
            parameters=sum(p.numel() for p in self.model.parameters()),
            embedding=embedding.weight.numel(),
            tied=head is not None and head.weight is embedding.weight,
            layers=config.num_hidden_layers,
            kv_heads=getattr(config, "num_key_value_heads", None) or heads,
            head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
        )


def pick_device(asked: str | None) -> str:
    """The device asked for, else the first GPU, else the CPU."""
    if asked not in (None, "auto"):
        device = torch.device(str(asked))
        return f"cuda:{device.index or 0}" if device.type == "cuda" else str(device)
    return "cuda:0" if torch.cuda.is_available() else "cpu"


def pick_dtype(asked: str | None, device: str, config: Any) -> str:
    """bfloat16 on a GPU; on a CPU what the checkpoint was saved in."""
    if asked is not None:
        return asked
    # transformers 4 knows only the second name, 5 warns about it
    saved = config.dtype if hasattr(config, "dtype") else getattr(config, "torch_dtype", None)
    own = str(saved).removeprefix("torch.")
    return "bfloat16" if device.startswith("cuda") or own not in DTYPE_BYTES else own


def read_config(source: Source) -> Any:
    """The architecture with its code imported; ModelError when this transformers does not know it."""
    try:
        if source.shape is not None:
            config = AutoConfig.for_model(**source.shape)
        else:
            config = AutoConfig.from_pretrained(source.folder)
        transformers.MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    except (ValueError, KeyError, ImportError) as error:
        what = f"transformers {transformers.__version__} cannot serve the architecture of '{source.name}'"
        do = "give a causal language model, or try: pip install -U transformers"
        raise ModelError(what, _first_line(error), do) from error
    return config


def load(source: Source, config: Any, device: str, dtype: str, phase: Phase) -> LoadedModel:
    """All phases after the import. Weights are touched page by page, so that `weights` holds the reading."""
    with phase("tokenizer"):
        tokenizer = _tokenizer(source)
    with phase("weights"):
        model = _random(config, device, dtype) if source.shape else _stored(source, dtype)
    with phase("to_device"):
        model.to(device)
    own = model.generation_config
    model.generation_config = GenerationConfig()  # or generate() would bring back what a request leaves out
    ends = frozenset() if source.weights_random else end_ids(own.eos_token_id, tokenizer.eos_token_id)
    loaded = LoadedModel(
        model.eval(), tokenizer, device, dtype, ends, defaults_of(own, source.weights_random)
    )
    with phase("first_forward"), torch.inference_mode():
        model(torch.zeros((1, 8), dtype=torch.long, device=device))
        if loaded.cuda:
            torch.cuda.synchronize()
    return loaded


def end_ids(configured: int | list[int] | None, tokenizers_own: int | None) -> frozenset[int]:
    """Ids that end a turn: the generation settings', else the tokenizer's."""
    if configured is None:
        return frozenset() if tokenizers_own is None else frozenset({tokenizers_own})
    return frozenset([configured] if isinstance(configured, int) else configured)


def defaults_of(own: Any, random: bool) -> Defaults:
    """The checkpoint's sampling, unset fields neutral; random weights are sampled, greedy would loop."""
    return Defaults(
        do_sample=bool(own.do_sample) or random,
        temperature=1.0 if own.temperature is None else float(own.temperature),
        top_p=1.0 if own.top_p is None else float(own.top_p),
        top_k=0 if own.top_k is None else int(own.top_k),
    )


def _tokenizer(source: Source) -> Any:
    do = "copy tokenizer.json and tokenizer_config.json of the model into the folder"
    what = f"'{source.name}' has no usable tokenizer"
    try:
        tokenizer = AutoTokenizer.from_pretrained(source.folder)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ModelError(what, _first_line(error), do) from error
    if not tokenizer("a").input_ids:  # transformers 5 makes an empty one where the files are missing
        raise ModelError(what, "it has no vocabulary", do)
    return tokenizer


def _stored(source: Source, dtype: str) -> Any:
    options = {DTYPE_ARGUMENT: getattr(torch, dtype), "output_loading_info": True}
    model, report = AutoModelForCausalLM.from_pretrained(source.folder, **options)
    if report["missing_keys"]:
        missing = sorted(report["missing_keys"])
        why = f"{len(missing)} tensors of config.json are not in the weights, for example {missing[0]}"
        raise ModelError(
            f"the weights of '{source.name}' are incomplete", why, "download it again, completely"
        )
    _touch(model)
    return model


def _touch(model: Any) -> None:
    """Reads one byte of every page: weights may be mapped from the file and still unread."""
    for parameter in model.parameters():
        parameter.detach().reshape(-1).view(torch.uint8)[::PAGE_BYTES].max()


def _random(config: Any, device: str, dtype: str) -> Any:
    """Initialised where it will run, in its final dtype: normal, standard deviation 0.02."""
    with torch.device(device):
        return AutoModelForCausalLM.from_config(config, **{DTYPE_ARGUMENT: getattr(torch, dtype)})


def explain(error: Exception) -> ModelError:
    """A foreign exception of loading or generating as one of ours."""
    if isinstance(error, ModelError):
        return error
    text = _first_line(error)
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error):
        do = "use a smaller model or dtype, or free memory (nvidia-smi, free -h)"
        return ModelError("there is not enough memory for this model", text, do)
    do = "see the run's log.txt for the traceback"
    return ModelError("the model could not be run", f"{type(error).__name__}: {text}", do)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
