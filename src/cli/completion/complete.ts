import type { Argument, Command, Option } from 'commander';
import type { Candidate, LiveNames, NameKind } from './live-names.ts';

export interface Completion {
  readonly candidates: readonly Candidate[];
  /** The shell also completes file names. */
  readonly files: boolean;
  /** No space after the word, as after `sandbox/`. */
  readonly noSpace: boolean;
}

/** Completes the last of `words`. `names` looks up existing things. */
export const complete = async (
  root: Command,
  words: readonly string[],
  names: LiveNames,
): Promise<Completion> => {
  const current = words.at(-1) === '=' ? '' : (words.at(-1) ?? '');
  const before = words.slice(0, -1).filter((word) => word !== '='); // bash splits words at `=`
  if (before.at(-1) === ':') return NOTHING; // and at `:`, before a path in a sandbox
  const { command, operands, awaiting, ended } = walk(
    root,
    before[0] === 'help' ? before.slice(1) : before,
  );
  const namesOf: LiveNames = (kind, of = operands[0]) => names(kind, of);
  const [, word = '', value = ''] = /^(--[^=]+)=(.*)$/.exec(current) ?? [];
  const own = optionOf(command, word);
  if (own) return prefixed(await valuesOf(own, value, namesOf), `${word}=`);
  if (awaiting) return await valuesOf(awaiting, current, namesOf);
  if (!ended && current.startsWith('-')) return fitting(optionsOf(command), current);
  if (!ended && operands.length === 0 && command.commands.length > 0)
    return fitting(commandsOf(command), current);
  return await operandOf(command, operands, { current, names });
};

const walk = (
  root: Command,
  words: readonly string[],
): {
  readonly command: Command;
  readonly operands: readonly string[];
  readonly awaiting: Option | undefined;
  readonly ended: boolean;
} => {
  let command = root;
  const operands: string[] = [];
  let awaiting: Option | undefined;
  let ended = false;
  for (const word of words) {
    if (awaiting) {
      awaiting = undefined;
    } else if (word === '--') {
      ended = true;
    } else if (!ended && word.startsWith('-')) {
      const option = optionOf(command, word);
      awaiting = option && (option.required || option.optional) ? option : undefined;
    } else {
      const member =
        ended || operands.length > 0
          ? undefined
          : command.commands.find((candidate) => candidate.name() === word);
      if (member) command = member;
      else operands.push(word);
    }
  }
  return { command, operands, awaiting, ended };
};

const optionOf = (command: Command, word: string): Option | undefined =>
  command.options.find(({ long, short }) => long === word || short === word);

const optionsOf = (command: Command): readonly Candidate[] => [
  ...command.options
    .filter(({ hidden }) => !hidden)
    .map(({ long, short, description }) => ({ word: long ?? short ?? '', about: description })),
  { word: '--help', about: 'display help for command' },
];

const commandsOf = (command: Command): readonly Candidate[] => [
  ...command.commands.map((member) => ({
    word: member.name(),
    about: member.summary() || member.description(),
  })),
  { word: 'help', about: 'display help for command' },
];

const valuesOf = async (option: Option, current: string, names: LiveNames): Promise<Completion> => {
  if (option.argChoices)
    return fitting(
      option.argChoices.map((word) => ({ word })),
      current,
    );
  if (/<(file|dir|path)>/.test(option.flags)) return { ...NOTHING, files: true };
  const kind = VALUE_KINDS[option.long ?? ''];
  return kind === undefined ? NOTHING : fitting(await names(kind), current);
};

/** By the operand's name. */
const operandOf = async (
  command: Command,
  { length: place, 0: first }: readonly string[],
  { current, names }: { readonly current: string; readonly names: LiveNames },
): Promise<Completion> => {
  const argument: Argument | undefined =
    command.registeredArguments[place] ??
    command.registeredArguments.findLast(({ variadic }) => variadic);
  const name = argument?.name() ?? '';
  const kind = OPERAND_KINDS[name];
  if (kind !== undefined)
    return fitting(await names(kind, PARTS.has(kind) ? first : undefined), current);
  switch (name) {
    case 'subject':
      return fitting(
        [{ word: 'pool', about: 'then its name' }, ...(await names('sandbox'))],
        current,
      );
    case 'file':
      return { ...NOTHING, files: true };
    case 'shell':
      return fitting(argument?.argChoices?.map((word) => ({ word })) ?? [], current);
    case 'what':
      return await targets(current, names);
    case 'from':
    case 'to':
      return await places(current, names);
    default:
      return NOTHING;
  }
};

const targets = async (current: string, names: LiveNames): Promise<Completion> => {
  const kind = /^(sandbox|pool)\//.exec(current)?.[1];
  if (kind === 'sandbox' || kind === 'pool')
    return prefixed(fitting(await names(kind), current.slice(kind.length + 1)), `${kind}/`);
  return {
    ...fitting(
      [
        { word: 'sandbox/', about: 'a sandbox' },
        { word: 'pool/', about: 'a pool' },
      ],
      current,
    ),
    noSpace: true,
  };
};

/** A local file, or `SANDBOX:` and a path in it. */
const places = async (current: string, names: LiveNames): Promise<Completion> => {
  if (/[:/]/.test(current)) return { ...NOTHING, files: !current.includes(':') };
  const sandboxes = (await names('sandbox')).map(({ word, about }) => ({
    word: `${word}:`,
    about,
  }));
  return { ...fitting(sandboxes, current), files: true, noSpace: true };
};

const NOTHING: Completion = { candidates: [], files: false, noSpace: false };
const OPERAND_KINDS: Readonly<Record<string, NameKind>> = {
  sandbox: 'sandbox',
  pool: 'pool',
  env: 'env',
  member: 'member',
  group: 'group',
  process: 'process',
  template: 'template',
  key: 'key',
};
/** Their names depend on the first operand. */
const PARTS: ReadonlySet<NameKind> = new Set(['member', 'group', 'process']);
const VALUE_KINDS: Readonly<Record<string, NameKind>> = {
  '--pool': 'pool',
  '--template': 'template',
  '--instance-type': 'instance-type',
  '--process': 'process',
};

const fitting = (candidates: readonly Candidate[], current: string): Completion => ({
  ...NOTHING,
  candidates: candidates.filter(({ word }) => word !== '' && word.startsWith(current)),
});

const prefixed = (completion: Completion, prefix: string): Completion => ({
  ...completion,
  candidates: completion.candidates.map((candidate) => ({
    ...candidate,
    word: `${prefix}${candidate.word}`,
  })),
});
