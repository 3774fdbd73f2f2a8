/**
 * Writes src/e2b/services/generated/ from the .proto files beside it. `buf` and its plugin are
 * fetched for this alone. Each file names the .proto it was made of by its hash, which a test holds
 * against it.
 */
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SERVICES = fileURLToPath(new URL('../src/e2b/services/', import.meta.url));
const NAMES = ['process', 'filesystem'] as const;
const TOOLS = ['@bufbuild/buf@1.75.0', '@bufbuild/protoc-gen-es@2.13.0'];

/** The first line of a generated file. */
export const firstLine = (name: string): string =>
  `// Written by script/e2b-protocol.ts from ../protocol/${name}.proto:\n// ` +
  hash('sha256', readFileSync(join(SERVICES, 'protocol', `${name}.proto`)));

export const generatedFiles = (): readonly { readonly name: string; readonly text: string }[] =>
  NAMES.map((name) => ({
    name,
    text: readFileSync(join(SERVICES, 'generated', `${name}.ts`), 'utf8'),
  }));

const generate = (): void => {
  const folder = mkdtempSync(join(tmpdir(), 'e2b-protocol-'));
  try {
    const template = {
      version: 'v2',
      plugins: [{ local: 'protoc-gen-es', out: folder, opt: ['target=ts'] }],
    };
    const packages = TOOLS.map((tool) => `--package=${tool}`);
    const input = join(SERVICES, 'protocol');
    const buf = ['buf', 'generate', input, '--template', JSON.stringify(template)];
    execFileSync('npx', ['--yes', ...packages, ...buf], { stdio: 'inherit', cwd: folder });
    for (const name of NAMES) {
      const made = readFileSync(join(folder, `${name}_pb.ts`), 'utf8');
      const text = `${firstLine(name)}\n${withoutEnums(withoutComments(made))}`;
      writeFileSync(join(SERVICES, 'generated', `${name}.ts`), text);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
};

/** They say again what the .proto says. */
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

if (process.argv[1] === fileURLToPath(import.meta.url)) generate();
