# SPDX-License-Identifier: Apache-2.0
"""Writes chat_formats.json: conversations as Transformers' apply_chat_template writes them.

    python3 make_chat_golden.py MODEL.gguf [TEMPLATE.jinja …] > chat_formats.json

MODEL.gguf is SmolLM2, whose template is in the file. The other templates are those of the models named, without the
branches for tools. Needs transformers and gguf. Further files are added under their names, for a check of whole files.
"""

import json
import pathlib
import sys

from gguf import GGUFReader
from transformers.utils.chat_template_utils import render_jinja_template

QWEN2_5 = r"""{%- if messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
{%- else %}
    {{- '<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant") %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"""

LLAMA_3 = r"""{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>

'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>

' }}{% endif %}"""

LLAMA_3_2 = r"""{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{#- System message #}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{{- "Cutting Knowledge Date: December 2023\n" }}
{{- "Today Date: " + date_string + "\n\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"""

GEMMA_2 = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}"
    "{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"
)

GEMMA_3 = r"""{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '

' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '

' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
"""

MISTRAL_V0_1 = r"""{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('After the optional system message, conversation roles must alternate') }}
    {%- endif %}
    {%- if message['role'] == 'user' %}
        {%- if loop.first and system_message is defined %}
            {{- ' [INST] ' + system_message + '\n\n' + message['content'] + ' [/INST]' }}
        {%- else %}
            {{- ' [INST] ' + message['content'] + ' [/INST]' }}
        {%- endif %}
    {%- elif message['role'] == 'assistant' %}
        {{- ' ' + message['content'] + eos_token}}
    {%- endif %}
{%- endfor %}
"""

MISTRAL_V0_2 = (
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}"
    "{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}"
)


def mistral_v3(before, after, assistant):
    """Mistral 7B v0.3 and Nemo, without tools: the system message comes before the last user's."""
    return (
        r"""{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "BEFORE" + system_message + "\n\n" + message["content"] + "AFTER" }}
        {%- else %}
            {{- "BEFORE" + message["content"] + "AFTER" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- ASSISTANT }}
    {%- endif %}
{%- endfor %}
""".replace("BEFORE", before).replace("AFTER", after).replace("ASSISTANT", assistant)
    )


PHI_3_5 = (
    "{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}{{'<|system|>\n' + "
    "message['content'] + '<|end|>\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + "
    "'<|end|>\n'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"
)

PHI_4 = (
    "{% for message in messages %}{% if (message['role'] == 'system') %}{{'<|im_start|>system<|im_sep|>' + "
    "message['content'] + '<|im_end|>'}}{% elif (message['role'] == 'user') %}{{'<|im_start|>user<|im_sep|>' + "
    "message['content'] + '<|im_end|>'}}{% elif (message['role'] == 'assistant') %}"
    "{{'<|im_start|>assistant<|im_sep|>' + message['content'] + '<|im_end|>'}}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}"
)

PHI_4_MINI = (
    "{% for message in messages %}{% if message['role'] == 'system' and 'tools' in message and message['tools'] is "
    "not none %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' "
    "+ '<|end|>' }}{% else %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}"
)

# name: (format, template, bos); an unknown format is refused
TEMPLATES = {
    "Qwen2.5": ("ChatML", QWEN2_5, ""),
    "Llama-3": ("Llama 3", LLAMA_3, "<|begin_of_text|>"),
    "Llama-3.2": ("Llama 3", LLAMA_3_2, "<|begin_of_text|>"),
    "gemma-2": ("Gemma", GEMMA_2, "<bos>"),
    "gemma-3": ("Gemma", GEMMA_3, "<bos>"),
    "Mistral-7B-v0.1": ("Mistral", MISTRAL_V0_1, "<s>"),
    "Mistral-7B-v0.2": ("Mistral", MISTRAL_V0_2, "<s>"),
    "Mistral-7B-v0.3": ("Mistral", mistral_v3("[INST] ", "[/INST]", '" " + message["content"]|trim + eos_token'), "<s>"),
    "Mistral-Nemo": ("Mistral", mistral_v3("[INST]", "[/INST]", 'message["content"] + eos_token'), "<s>"),
    "Phi-3.5": ("Phi", PHI_3_5, "<s>"),
    "Phi-4": ("Phi", PHI_4, ""),
    "Phi-4-mini": ("Phi", PHI_4_MINI, ""),
    # Templates that differ from a recognised one by what they write.
    "ChatML that begins with thoughts": (None, QWEN2_5.replace("assistant\\n' }}", "assistant\\n<think>\\n' }}"), ""),
    "ChatML that trims": (None, QWEN2_5.replace("message.content +", "message.content | trim +"), ""),
    "ChatML with a line end between turns": (
        None,
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' "
        "}}\n{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
        "",
    ),
    "Gemma without a rule for system messages": (
        None,
        GEMMA_2.replace("{{ raise_exception('System role not supported') }}", ""),
        "<bos>",
    ),
    "Mistral-Small": (None, "{{ '[SYSTEM_PROMPT]' + messages[0]['content'] + '[/SYSTEM_PROMPT]' }}" + MISTRAL_V0_2, "<s>"),
    "Zephyr": (
        None,
        "{% for message in messages %}{{ '<|' + message['role'] + '|>\n' + message['content'] + eos_token }}"
        "{% if loop.last and add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}{% endfor %}",
        "",
    ),
}

SYSTEM = {"role": "system", "content": " Answer in  one line.\n"}
TURNS = [
    {"role": "user", "content": " What is light? "},
    {"role": "assistant", "content": "\nRays,\nof colours. "},
    {"role": "user", "content": "Why?"},
]
CONVERSATIONS = [TURNS[:1], TURNS, [SYSTEM, *TURNS[2:]], [SYSTEM, *TURNS]]


def rendered(template, messages, bos):
    """Returns the text, or None if the template refuses the messages."""
    try:
        texts, _ = render_jinja_template(
            conversations=[messages],
            chat_template=template,
            add_generation_prompt=True,
            bos_token=bos,
            eos_token="</s>",
            date_string="26 Jul 2024",
        )
    except Exception as error:  # noqa: BLE001 -- the template's own raise_exception
        if "System role" not in str(error) and "roles" not in str(error):
            raise
        return None
    return texts[0]


def main():
    smollm2 = GGUFReader(sys.argv[1]).fields["tokenizer.chat_template"].contents()
    templates = {"SmolLM2": ("ChatML", smollm2, ""), **TEMPLATES}
    for path in map(pathlib.Path, sys.argv[2:]):
        templates[path.stem] = ("any", path.read_text(), "<s>")
    cases = []
    for name, (form, template, bos) in templates.items():
        case = {"name": name, "format": form, "template": template, "bos": bos}
        if form is not None:
            case["texts"] = [
                {"messages": messages, "text": rendered(template, messages, bos)} for messages in CONVERSATIONS
            ]
        cases.append(case)
    json.dump(cases, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
