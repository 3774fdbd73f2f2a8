/**
 * `buf` and its plugin are fetched only for this. Each file has the hash of its .proto, so a check
 * needs no `buf`.
 */
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { GeneratedFiles } from './generated-files.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SERVICES = 'src/http/e2b/services/';
const fileOf = (name: string): string => `${SERVICES}generated/${name}.ts`;
const NAMES = ['process', 'filesystem'] as const;
const TOOLS = ['@bufbuild/buf@1.75.0', '@bufbuild/protoc-gen-es@2.13.0'];

const firstLine = (name: string): string =>
  `// Written by script/e2b-protocol.ts from ../protocol/${name}.proto:\n// ` +
  hash('sha256', readFileSync(join(ROOT, SERVICES, 'protocol', `${name}.proto`)));

export const staleProtocolFiles = (): readonly string[] =>
  NAMES.filter(
    (name) => !readFileSync(ROOT + fileOf(name), 'utf8').startsWith(firstLine(name)),
  ).map(fileOf);

export const protocolFiles = (): GeneratedFiles => {
  const folder = mkdtempSync(join(tmpdir(), 'e2b-protocol-'));
  try {
    const template = {
      version: 'v2',
      plugins: [{ local: 'protoc-gen-es', out: folder, opt: ['target=ts'] }],
    };
    const packages = TOOLS.map((tool) => `--package=${tool}`);
    const input = join(ROOT, SERVICES, 'protocol');
    const buf = ['buf', 'generate', input, '--template', JSON.stringify(template)];
    execFileSync('npx', ['--yes', ...packages, ...buf], { stdio: 'inherit', cwd: folder });
    return new Map(
      NAMES.map((name) => {
        const made = readFileSync(join(folder, `${name}_pb.ts`), 'utf8');
        return [fileOf(name), `${firstLine(name)}\n${withoutEnums(withoutComments(made))}`];
      }),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
};

const withoutComments = (text: string): string =>
  text
    .replaceAll(/^\s*\/\*\*\n(?:\s*\*.*\n)+?\s*\*\/\n/gm, '')
    .replaceAll(/^\s*\/\/.*\n/gm, '')
    .replaceAll('/* eslint-disable */\n', '')
    .replaceAll(/\n{2,}/g, '\n');

/** TypeScript's own leave code behind when types are stripped. */
const withoutEnums = (text: string): string =>
  text.replaceAll(
    /^export enum (\w+) \{\n([^}]*)\}$/gm,
    (_, name: string, members: string) =>
      `export const ${name} = {\n${members.replaceAll(' = ', ': ')}} as const;\n` +
      `export type ${name} = (typeof ${name})[keyof typeof ${name}];`,
  );
