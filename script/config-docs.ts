/**
 * Makes docs/configuration.md from the settings and config/default.yaml (script/generate
 * config-docs).
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { listSettings } from '../src/daemon/config/settings.ts';

const DEFAULTS = fileURLToPath(new URL('../config/default.yaml', import.meta.url));

const PROSE = `
<!-- Written by script/config-docs.ts from src/daemon/config/schema.ts and config/default.yaml. -->

# Configuration

Every setting has three forms: a key in a YAML file, an environment variable, and a flag of \`sandpool serve\`, but for secrets: anybody on
the machine can read a command line. Where several are
given, the flag goes before the variable, the variable before the file of \`--config\` (or \`SANDPOOL_CONFIG\`), and that file before
[config/default.yaml](../config/default.yaml), which holds every default. A file of your own names only what differs:

\`\`\`yaml
listen: "0.0.0.0:8080"
quotas:
  sandboxes: 20
\`\`\`

- All faults are reported at once, each with the file, variable or flag that it came from, and the daemon does not start. An
  unknown key, or an unknown variable that begins with \`SANDPOOL_\`, is a fault.
- \`sandpool config print\` shows the merged result with the origin of each value, secrets masked; \`sandpool config check FILE\`
  checks a file before a daemon starts with it.
- Durations are text: \`90s\`, \`30m\`, \`1h30m\`. Lists are given to a variable or a flag with commas between.
- A relative path in a file is taken from that file's folder, one in a variable or a flag from the working folder.
- Settings are read at the start. To change one, restart the daemon; sandboxes go on meanwhile.
- What \`isolation: none\` gives up is told in [security](security.md#levels).

Commands other than \`serve\` find the daemon by \`--data-dir\` or \`SANDPOOL_DATA_DIR\`, or by \`--server\` or \`SANDPOOL_SERVER\` (a
URL), and their key by \`--key-file\`, \`SANDPOOL_API_KEY_FILE\` or \`SANDPOOL_API_KEY\` (the key itself); else they take the
\`keys/tenant.key\` of the data folder.

## Settings
`;

export const configPage = (): string => {
  const defaults: unknown = parse(readFileSync(DEFAULTS, 'utf8'));
  const rows = listSettings().map(({ path, variable, flag, description }) => [
    `\`${path}\``,
    flag === undefined ? `\`${variable}\`` : `\`${variable}\`<br>\`${flag}\``,
    shown(path, valueAt(defaults, path)),
    description,
  ]);
  const table = [
    ['YAML key', 'variable, flag', 'default', ''],
    ['---', '---', '---', '---'],
    ...rows,
  ];
  return `${PROSE.trim()}\n\n${table.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
};

const valueAt = (tree: unknown, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>(
      (at, key) => (typeof at === 'object' && at !== null ? Reflect.get(at, key) : undefined),
      tree,
    );

const shown = (path: string, value: unknown): string => {
  if (path === 'dataDir') return '`/var/lib/sandpool` for root, else `~/.local/share/sandpool`';
  if (path === 'templatesDir') return 'config/templates';
  if (path === 'instanceTypes.file') return 'config/instance-types.yaml';
  if (value === null || value === undefined) return '–';
  if (Array.isArray(value)) return value.length === 0 ? 'none' : `\`${value.join(',')}\``;
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
};
