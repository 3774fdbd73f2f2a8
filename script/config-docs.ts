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

Every setting has three forms: a key in a YAML file, an environment variable, and a flag of \`sandpool serve\`. Secrets have no flag,
because anybody on the machine can read a command line. A flag overrides the variable, the variable overrides the file of \`--config\`
(or \`SANDPOOL_CONFIG\`), and that file overrides [config/default.yaml](../config/default.yaml), which holds every default. Your own
file names only the settings that differ:

\`\`\`yaml
listen: "0.0.0.0:8080"
quotas:
  sandboxes: 20
\`\`\`

- The daemon does not start if a setting is wrong. It reports all errors at once, each with its file, variable or flag. An
  unknown key is an error, and so is an unknown variable that begins with \`SANDPOOL_\`.
- \`sandpool config print\` shows the merged result with the origin of each value, secrets masked; \`sandpool config check FILE\`
  checks a file before a daemon starts with it.
- Durations are text: \`90s\`, \`30m\`, \`1h30m\`. In a variable or a flag, separate the items of a list by commas.
- A relative path in a file starts at that file's folder; in a variable or a flag, at the working folder.
- Settings are read at the start. To change one, restart the daemon; sandboxes keep running.
- [Security](security.md#levels) says what \`isolation: none\` gives up.

Commands other than \`serve\` find the daemon by \`--data-dir\` or \`SANDPOOL_DATA_DIR\`, or by \`--server\` or \`SANDPOOL_SERVER\` (a
URL). They take their key from \`--key-file\`, \`SANDPOOL_API_KEY_FILE\` or \`SANDPOOL_API_KEY\` (the key itself), else from
\`keys/tenant.key\` in the data folder.

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
