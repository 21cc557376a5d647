"""The providers as data: a row for each, under the name that LiteLLM gives it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Provider:
    """One row: the prefix of its model strings, where it is, and which variables hold its key and address."""

    prefix: str
    base_url: str
    """Empty where every user has an address of their own."""
    key_variables: tuple[str, ...] = ()
    base_variables: tuple[str, ...] = ()
    is_local: bool = False
    base_path: str = ""
    """What an address that has no path gets: people write http://localhost:11434 for Ollama."""
    wire: str = "chat"
    """The wire format: "chat", "anthropic" or "responses"."""
    key_header: str = "Authorization"
    objects_to: tuple[str, ...] = ()
    """Fields of a request that it is known to refuse, so that none is refused to find that out."""


_OLLAMA = "http://localhost:11434/v1"
_OPENAI_BASES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_USAGE_ANYWAY = ("stream_options",)  # it counts tokens without being asked to

# fmt: off
PROVIDERS: tuple[Provider, ...] = (
    Provider("openai", "https://api.openai.com/v1", ("OPENAI_API_KEY",), _OPENAI_BASES),
    Provider("anthropic", "https://api.anthropic.com/v1", ("ANTHROPIC_API_KEY",),
             ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"), base_path="/v1", wire="anthropic",
             key_header="x-api-key"),
    Provider("gemini", "https://generativelanguage.googleapis.com/v1beta/openai",
             ("GEMINI_API_KEY", "GOOGLE_API_KEY"), ("GEMINI_API_BASE",)),
    # On this machine
    Provider("ollama", _OLLAMA, (), ("OLLAMA_HOST",), is_local=True, base_path="/v1"),
    Provider("ollama_chat", _OLLAMA, (), ("OLLAMA_HOST",), is_local=True, base_path="/v1"),
    Provider("lm_studio", "http://localhost:1234/v1", ("LM_STUDIO_API_KEY",), ("LM_STUDIO_API_BASE",),
             is_local=True),
    Provider("jan", "http://localhost:1337/v1", ("JAN_API_KEY",), is_local=True),
    Provider("llamafile", "http://localhost:8080/v1", ("LLAMAFILE_API_KEY",), ("LLAMAFILE_API_BASE",),
             is_local=True),
    Provider("builtin", "http://127.0.0.1", (), is_local=True),  # its engine says the rest when it runs
    Provider("xinference", "http://127.0.0.1:9997/v1", ("XINFERENCE_API_KEY",), ("XINFERENCE_API_BASE",),
             is_local=True),
    Provider("docker_model_runner", "http://localhost:12434/engines/v1", ("DOCKER_MODEL_RUNNER_API_KEY",),
             ("DOCKER_MODEL_RUNNER_API_BASE",), is_local=True),
    Provider("lemonade", "http://localhost:8000/api/v1", ("LEMONADE_API_KEY",), ("LEMONADE_API_BASE",),
             is_local=True),
    # Wherever the user has it
    Provider("azure", "", ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
             ("AZURE_API_BASE", "AZURE_OPENAI_ENDPOINT"), key_header="api-key"),
    Provider("hosted_vllm", "", ("HOSTED_VLLM_API_KEY",), ("HOSTED_VLLM_API_BASE",), base_path="/v1"),
    Provider("litellm_proxy", "", ("LITELLM_PROXY_API_KEY",), ("LITELLM_PROXY_API_BASE",)),
    Provider("databricks", "", ("DATABRICKS_API_KEY",), ("DATABRICKS_API_BASE",),
             base_path="/serving-endpoints"),
    # On the net
    Provider("ai21", "https://api.ai21.com/studio/v1", ("AI21_API_KEY",)),
    Provider("aiml", "https://api.aimlapi.com/v1", ("AIML_API_KEY",), ("AIML_API_BASE",)),
    Provider("baseten", "https://inference.baseten.co/v1", ("BASETEN_API_KEY",)),
    Provider("cerebras", "https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",), ("CEREBRAS_API_BASE",)),
    Provider("chutes", "https://llm.chutes.ai/v1", ("CHUTES_API_KEY",), ("CHUTES_API_BASE",)),
    Provider("codestral", "https://codestral.mistral.ai/v1", ("CODESTRAL_API_KEY",),
             objects_to=_USAGE_ANYWAY),
    Provider("cohere", "https://api.cohere.ai/compatibility/v1", ("COHERE_API_KEY", "CO_API_KEY")),
    Provider("cohere_chat", "https://api.cohere.ai/compatibility/v1", ("COHERE_API_KEY", "CO_API_KEY")),
    Provider("cometapi", "https://api.cometapi.com/v1", ("COMETAPI_KEY",), ("COMETAPI_API_BASE",)),
    Provider("compactifai", "https://api.compactif.ai/v1", ("COMPACTIFAI_API_KEY",)),
    Provider("dashscope", "https://dashscope.aliyuncs.com/compatible-mode/v1", ("DASHSCOPE_API_KEY",),
             ("DASHSCOPE_API_BASE",)),
    Provider("deepinfra", "https://api.deepinfra.com/v1/openai", ("DEEPINFRA_API_KEY",),
             ("DEEPINFRA_API_BASE",)),
    Provider("deepseek", "https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",), ("DEEPSEEK_API_BASE",)),
    Provider("featherless_ai", "https://api.featherless.ai/v1",
             ("FEATHERLESS_AI_API_KEY", "FEATHERLESS_API_KEY"), ("FEATHERLESS_API_BASE",)),
    Provider("fireworks_ai", "https://api.fireworks.ai/inference/v1",
             ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKSAI_API_KEY"), ("FIREWORKS_API_BASE",)),
    Provider("friendliai", "https://api.friendli.ai/serverless/v1", ("FRIENDLIAI_API_KEY", "FRIENDLI_TOKEN"),
             ("FRIENDLI_API_BASE",)),
    Provider("galadriel", "https://api.galadriel.com/v1", ("GALADRIEL_API_KEY",), ("GALADRIEL_API_BASE",)),
    Provider("github", "https://models.inference.ai.azure.com", ("GITHUB_API_KEY",), ("GITHUB_API_BASE",)),
    Provider("gradient_ai", "https://inference.do-ai.run/v1", ("GRADIENT_AI_API_KEY",)),
    Provider("groq", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",), ("GROQ_API_BASE",)),
    Provider("huggingface", "https://router.huggingface.co/v1", ("HF_TOKEN", "HUGGINGFACE_API_KEY"),
             ("HUGGINGFACE_API_BASE",)),
    Provider("hyperbolic", "https://api.hyperbolic.xyz/v1", ("HYPERBOLIC_API_KEY",),
             ("HYPERBOLIC_API_BASE",)),
    Provider("inception", "https://api.inceptionlabs.ai/v1", ("INCEPTION_API_KEY",),
             ("INCEPTION_API_BASE",)),
    Provider("lambda_ai", "https://api.lambda.ai/v1", ("LAMBDA_API_KEY",), ("LAMBDA_API_BASE",)),
    Provider("meta_llama", "https://api.llama.com/compat/v1", ("LLAMA_API_KEY",), ("LLAMA_API_BASE",)),
    Provider("meta", "https://api.meta.ai/v1", ("META_API_KEY",), ("META_API_BASE",)),
    Provider("minimax", "https://api.minimax.io/v1", ("MINIMAX_API_KEY",), ("MINIMAX_API_BASE",)),
    Provider("mistral", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), ("MISTRAL_API_BASE",),
             objects_to=_USAGE_ANYWAY),
    Provider("moonshot", "https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",), ("MOONSHOT_API_BASE",)),
    Provider("morph", "https://api.morphllm.com/v1", ("MORPH_API_KEY",), ("MORPH_API_BASE",)),
    Provider("nebius", "https://api.studio.nebius.ai/v1", ("NEBIUS_API_KEY",), ("NEBIUS_API_BASE",)),
    Provider("novita", "https://api.novita.ai/v3/openai", ("NOVITA_API_KEY",), ("NOVITA_API_BASE",)),
    Provider("nscale", "https://inference.api.nscale.com/v1", ("NSCALE_API_KEY",), ("NSCALE_API_BASE",)),
    Provider("nvidia_nim", "https://integrate.api.nvidia.com/v1", ("NVIDIA_NIM_API_KEY", "NVIDIA_API_KEY"),
             ("NVIDIA_NIM_API_BASE",)),
    Provider("openrouter", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY", "OR_API_KEY"),
             ("OPENROUTER_API_BASE",)),
    Provider("ovhcloud", "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1", ("OVHCLOUD_API_KEY",),
             ("OVHCLOUD_API_BASE",)),
    Provider("perplexity", "https://api.perplexity.ai", ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
             ("PERPLEXITY_API_BASE",)),
    Provider("poe", "https://api.poe.com/v1", ("POE_API_KEY",)),
    Provider("sambanova", "https://api.sambanova.ai/v1", ("SAMBANOVA_API_KEY",), ("SAMBANOVA_API_BASE",)),
    Provider("scaleway", "https://api.scaleway.ai/v1", ("SCW_SECRET_KEY",)),
    Provider("synthetic", "https://api.synthetic.new/openai/v1", ("SYNTHETIC_API_KEY",)),
    Provider("together_ai", "https://api.together.xyz/v1",
             ("TOGETHER_API_KEY", "TOGETHERAI_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHER_AI_TOKEN"),
             ("TOGETHER_AI_API_BASE",)),
    Provider("v0", "https://api.v0.dev/v1", ("V0_API_KEY",), ("V0_API_BASE",)),
    Provider("veniceai", "https://api.venice.ai/api/v1", ("VENICE_AI_API_KEY",)),
    Provider("vercel_ai_gateway", "https://ai-gateway.vercel.sh/v1",
             ("VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"), ("VERCEL_AI_GATEWAY_API_BASE",)),
    Provider("volcengine", "https://ark.cn-beijing.volces.com/api/v3", ("VOLCENGINE_API_KEY", "ARK_API_KEY")),
    Provider("wandb", "https://api.inference.wandb.ai/v1", ("WANDB_API_KEY",), ("WANDB_API_BASE",)),
    Provider("xai", "https://api.x.ai/v1", ("XAI_API_KEY",), ("XAI_API_BASE",)),
    Provider("zai", "https://api.z.ai/api/paas/v4", ("ZAI_API_KEY",), ("ZAI_API_BASE",)),
)
# fmt: on

ROWS = {row.prefix: row for row in PROVIDERS}

THROUGH_LITELLM = frozenset(
    "azure_ai bedrock clarifai cloudflare gigachat github_copilot litellm nlp_cloud oci petals predibase "
    "replicate sagemaker sagemaker_chat snowflake triton vertex_ai vertex_ai_beta watsonx watsonx_text".split()
)
"""Some that no row claims and LiteLLM is known to have, so that the advice is short; it has more."""
