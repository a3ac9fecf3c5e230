"""Templates for chat_template_test.py: forms that models come with, and small ones for each thing a template can do."""

CHATML = """{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}\
{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

QWEN = """{%- if tools %}
    {{- 'tools: ' ~ (tools | tojson) }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou help.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not \
message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = \
messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}\
{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\
{{ raise_exception('roles must alternate') }}{% endif %}{% if loop.index0 == 0 and system_message != false %}\
{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}\
{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}\
{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}\
{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""

LLAMA3 = """{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + \
message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}\
{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}\
{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""

LLAMA31 = """{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{#- The first message may be the system's. #}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Today: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("one call at a time") }}
        {%- endif %}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable and message.content is not string %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set ns = namespace(index=0) %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("roles must alternate") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- else %}
        {{- raise_exception("only user and assistant") }}
    {%- endif %}
{%- endfor %}
"""

ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""

GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}\
{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\
{{ raise_exception('roles must alternate') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}\
{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + \
'<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}"""

GEMMA3 = """{{ bos_token }}
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
        {{ raise_exception("roles must alternate") }}
    {%- endif -%}
    {%- set role = "model" if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
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

QWEN3 = """{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not \
(message.content.startswith('<tool>') and message.content.endswith('</tool>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if message.role == "assistant" %}
        {%- set reasoning = '' %}
        {%- if '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or (not loop.last and reasoning)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' + \
content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""

MODELS = {"chatml": CHATML, "qwen": QWEN, "llama2": LLAMA2, "llama3": LLAMA3, "llama31": LLAMA31, "mistral": MISTRAL,
          "zephyr": ZEPHYR, "gemma": GEMMA, "gemma3": GEMMA3, "qwen3": QWEN3}

SMALL = [
    # White space.
    'a\n  {% if true %}\n  b\n  {% endif %}\nc\n\n', 'a {%- if true -%} \n b \n {%- endif +%}\n c',
    '  {%+ if true %} x{% endif %}', 'x {# a #}\n  {#- b -#}  \n y', '  {{ 1 }}\n  {{- 2 -}}\n 3\r\n4\r5',
    '{% if true -%}\n\n  {% endif %} z\n', '\n', '', 'a\n{# c #}b\n   {# d +#}\nf',
    '{%- set x = 1 %}  {{ x }}  {%- set y = 2 -%}  {{ y }}',
    # Expressions.
    '{{ 1 + 2 * 3 - 4 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 4 / 2 }} {{ 1.5 * 2 '
    '}} {{ 2 - 0.5 }}',
    "{{ 'a' ~ 1 ~ none ~ true ~ 1.0 ~ missing }}", "{{ 1 + 1 ~ 2 }} {{ 2 * 'ab' if false else 'ab' * 2 }}",
    "{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' != 'b' }} {{ 'a' < 'b' }} {{ none == "
    'none }}',
    "{{ not true or true and false }} {{ 1 and 'x' }} {{ '' or 'y' }} {{ 0 or none }} {{ not not 1 }}",
    "{{ 'b' in 'abc' }} {{ 2 in [1, 2] }} {{ 'k' in {'k': 1} }} {{ 3 not in (1, 2) }} {{ 'x' in missing }}",
    "{{ 'x' if missing else 'y' }} {{ 'x' if missing }}|{{ (1 if false else 2 if false else 3) }}",
    "{{ 'abé中d'[1] }} {{ 'abé中d'[-2:] }} {{ 'abé中d'[::-1] }} {{ 'abé'[5] }}|{{ [1,2,3][1:][0] }} {{ [1,2,3][-1] }} "
    '{{ [1,2][:-5]|length }}',
    "{{ [1,2,3][5:]|length }} {{ 'abc'[1:2] }} {{ 'abc'[2:1] }} {{ 'abc'[-9:9] }} {{ 'abc'[2:0:-1] }} {{ "
    "'abc'[:0:-1] }} {{ 'abc'[-2::-1] }}",
    "{{ {'a': {'b': [1, 'x']}}.a.b[1] }} {{ {'a': 1}['a'] }} {{ {'a': 1}.b }}| {{ messages.0.role if messages }}",
    '{{ \'it\'\'s\' }} {{ "q\\"\\u00e9\\x41\\n\\t\\\\ \\d" }} {{ \'a\' \'b\' }}',
    '{{ 5 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 3 is equalto 3 }} {{ 3 '
    'is not eq(3) }} {{ 1 is ne 2 }}',
    "{{ 'a' is string }} {{ 1 is number }} {{ true is number }} {{ 1 is integer }} {{ 1.0 is float }} {{ true is "
    'boolean }} {{ none is none }}',
    "{{ missing is defined }} {{ missing is undefined }} {{ {} is mapping }} {{ [] is sequence }} {{ 'a' is "
    'iterable }} {{ 1 is iterable }} {{ 1 is in [1] }}',
    '{{ not missing is defined }} {{ true is true }} {{ 1 is true }} {{ false is false }}',
    "{{ -3 | string }} {{ (-3) | int }} {{ '7' | int + 1 }} {{ 'x' | int(5) }}",
    # Filters and methods.
    '{{ \'  é a \' | trim }}| {{ \'xaxx\' | trim(\'x\') }} {{ \'éA\' | upper }} {{ \'ÉA\' | lower }} {{ "it\'s a '
    'bIG day" | title }}',
    "{{ [1, 2] | length }} {{ 'é中' | length }} {{ {'a': 1} | count }} {{ [3, 1] | first }} {{ [3, 1] | last }} {{ "
    "[] | first }}| {{ 'ab' | first }}",
    "{{ ['a', 1, none] | join(', ') }} {{ [] | join('x') }} {{ 'abc' | join('-') }} {{ messages | join(', ', "
    "attribute='role') }}",
    "{{ missing | default('d') }} {{ '' | default('d', true) }} {{ '' | d('e') }} {{ none | default('n') }}",
    "{{ 'aXbX' | replace('X', 'yy') }} {{ 'aXbX'.replace('X', '') }} {{ 'aXbX' | replace('X', '-', 1) }} {{ 'abc' "
    '| reverse }} {{ [1, 2] | reverse | join }}',
    '{{ {\'a\': [1, 2.5, none, true], \'é\': \'"\\n\\u0001<>\'} | tojson }} {{ [] | tojson }} {{ {} | '
    'tojson(indent=2) }}',
    "{{ {'a': [1, {'b': []}], 'c': {}} | tojson(indent=2) }}",
    "{{ messages | tojson }} {{ 'x' | tojson }} {{ 1.0 | tojson }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | rejectattr('role', 'in', "
    "['user']) | map(attribute='role') | join(' ') }}",
    "{{ messages | selectattr('content') | list | length }} {{ messages | map(attribute='content') | first }}",
    "{{ ' a b  c '.split() | join('|') }} {{ 'a,b,,c'.split(',') | join('|') }} {{ 'a,b,c'.split(',', 1) | "
    "join('|') }} {{ ' a b c '.split(none, 1) | join('|') }}",
    "{{ ' x '.strip() }} {{ ' x '.lstrip() }}| {{ ' x '.rstrip() }}| {{ 'xxaxx'.strip('x') }} {{ "
    "'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }}",
    '{{ \'ab\'.upper() ~ \'AB\'.lower() ~ "it\'s a-bé".title() }} {{ \', \'.join([\'a\', \'b\']) }}',
    "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %} {{ {'a': 1}.get('a') }} {{ {'a': "
    "1}.get('b') }} {{ {'a': 1}.get('b', 3) }}",
    "{{ {'a': 1}.keys() | list | join }} {{ {'a': 1}.values() | list | join }} {% for k, v in {'x': 3} | items "
    '%}{{ k ~ v }}{% endfor %}',
    # Statements.
    '{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}{{ loop.last }}{{ '
    'loop.length }} {% endfor %}',
    "{% for m in messages %}{{ loop.previtem.role if not loop.first }}<{{ (loop.nextitem or {'role': 'x'}).role }} "
    '{% else %}none{% endfor %}',
    "{% for m in messages if m.role == 'user' %}{{ loop.index }}{{ m.role }}{{ loop.last }}{% else %}empty{% "
    'endfor %}',
    '{% for i in range(5) %}{% if i == 1 %}{% continue %}{% elif i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}',
    '{% for i in range(2, 5) %}{{ i }}{% endfor %}{% for i in range(3, 0, -1) %}{{ i }}{% endfor %}{% for c in '
    "'é中' %}{{ c }},{% endfor %}",
    '{% for a, b in [[1, 2], [3, 4]] %}{% for c in [a, b] %}{{ loop.index }}{{ c }}{% endfor %}{{ loop.index }}{% '
    'endfor %}',
    '{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}',
    '{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}{% set a, b = [3, 4] %}{{ a + b }}',
    "{% set ns = namespace(n=0, s='') %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% set ns.s = ns.s ~ i "
    '%}{% endfor %}{{ ns.n }}{{ ns.s }}{{ ns.z }}',
    '{% set text %}a{{ 1 + 1 }}\n{% endset %}[{{ text }}]',
    '{% for x in missing %}{{ x }}{% else %}e{% endfor %}{{ missing }}{{ missing | length }}',
    "{% macro hi(name, mark='!') %}hi {{ name }}{{ mark }}{% endmacro %}{{ hi('a') }} {{ hi('b', mark='?') }} {{ "
    "hi(name='c') }} {{ hi('d', '.') | upper }}",
    '{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}',
    '{% set g = 5 %}{% macro f() %}{{ g }}{% endmacro %}{% for g in [1] %}{{ f() }}{% endfor %}',
    # What both refuse.
    '{{ missing.a }}', "{{ missing['a'] }}", "{{ 1 + 'a' }}", '{{ 1 / 0 }}', '{{ 1 // 0 }}', "{{ 'a' < 1 }}",
    '{% for a, b in [[1]] %}{% endfor %}', '{{ missing() }}', "{{ raise_exception('no ' ~ 1) }}",
    "{{ 'x'.nothing() }}", '{{ 5[0].x }}', '{{ none.x.y }}', '{% for x in 5 %}{% endfor %}', "{{ 'a' in 5 }}",
    '{% if %}{% endif %}', '{% endif %}', '{% if true %}', '{% for x %}{% endfor %}', '{{ 1 +', "{{ 'a }}",
    '{{ (1 }}', '{{ 1) }}', '{# x', '{{ }}', '{% set x %}', '{% else %}', '{% nothing %}', '{{ x | nothing }}',
    '{{ x is nothing }}', '{{ [1, 2 }}', '{% if true %}{% endfor %}', '{{ a b }}', '{% set 1 = 2 %}', '{% break %}',
]
