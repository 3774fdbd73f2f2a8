/** `--check` only compares. */
import { parseArgs } from 'node:util';
import { type Generator, GENERATORS, staleLines, writeStale } from './generators.ts';

const HELP = `usage: script/generate [--check] [NAME...]

Writes the generated files that are stale, and prints their paths. With --check it writes nothing, names each stale file with the
command that writes it, and ends with 1 if there is one. Installs nothing: script/bootstrap does.

${GENERATORS.map(({ name, apart }) => `  ${name.padEnd(19)}${apart === undefined ? '' : `only by its name: it ${apart}`}`.trimEnd()).join('\n')}

script/api-examples.ts, which asks a built daemon, is a command of its own.
`;

const chosen = (names: readonly string[]): readonly Generator[] => {
  if (names.length === 0) return GENERATORS.filter(({ apart }) => apart === undefined);
  return names.map((name) => {
    const found = GENERATORS.find((each) => each.name === name);
    if (!found) throw new RangeError(`no generator ${name}; script/generate --help lists them`);
    return found;
  });
};

const main = async (args: readonly string[]): Promise<number> => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { check: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const generators = chosen(positionals);
  const lines = await (values.check ? staleLines(generators) : writeStale(generators));
  for (const line of lines) process.stdout.write(`${line}\n`);
  return values.check && lines.length > 0 ? 1 : 0;
};

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
