/** Makes docs/reference/settings.md from the settings and config/default.yaml. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { listSettings } from '../src/daemon/config/settings.ts';

const DEFAULTS = fileURLToPath(new URL('../config/default.yaml', import.meta.url));

const PROSE = `
<!-- Written by script/config-docs.ts from src/daemon/config/schema.ts and config/default.yaml. -->

# Settings

[Configuration](../configuration.md) says how to set them.
`;

export const settingsPage = (): string => {
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
