/** Makes docs/reference/command-line.md from the help of every command. */
import type { Command } from 'commander';
import { Writable } from 'node:stream';
import { COMMANDS } from '../src/cli/command-table.ts';
import { program } from '../src/cli/program.ts';
import { configFlags } from '../src/daemon/config/config.ts';

const WIDTH = 100;
const SETTINGS = new Set(
  configFlags()
    .map(({ flags }) => flags)
    .filter((flags) => !/^--(config|data-dir|listen) /.test(flags)),
);

const PROSE = `
<!-- Written by script/cli-docs.ts from the help of the commands. -->

# The command line

\`bin/sandpool\` is one program: the daemon (\`serve\`), and everything that asks it for something. \`sandpool --help\`, and
\`--help\` after any command, say what is here.

- **Which daemon.** \`--server URL\` or \`SANDPOOL_SERVER\`; else the one that runs on the data folder, which \`--data-dir\`,
  \`SANDPOOL_DATA_DIR\` or \`SANDPOOL_CONFIG\` name.
- **Which key.** \`--key-file\`, \`SANDPOOL_API_KEY\` (the key itself) or \`SANDPOOL_API_KEY_FILE\`; else the tenant key of the data
  folder, and with \`--admin\` its admin key. Those two are sent to this machine alone.
- **Output.** \`-o table\`, \`wide\`, \`json\` or \`yaml\`. JSON and YAML are the service's own answers. What a person should know
  besides goes to standard error. On a terminal what takes long shows how far it is; in a pipe it is silent.
- **Exit codes.** 0 done · 1 it failed, or the service said no · 2 the command line was wrong · 128 + n ended by signal n.
  \`run\`, \`exec\` and \`shell\` end with the command's own code, and with 125 when Sandpool itself failed.
- **Settings.** Each has a flag of \`serve\`, \`config print\` and (some) of \`doctor\`; they are listed in
  [settings](settings.md), not here.
- **Completion.** \`source <(sandpool completion bash)\`, the same for zsh, \`sandpool completion fish | source\`: commands, options,
  and the names of pools, envs, sandboxes, templates, instance types and keys that there are.
`;

/** The page as the commands are now. */
export const cliPage = async (): Promise<string> => {
  const nothing = { action: () => async () => {}, serviceAction: () => async () => {} };
  const stdout = new Writable({ write: (_chunk, _encoding, done) => done() });
  const sections: string[] = [];
  for (const { name } of COMMANDS) {
    const root = await program([name], nothing, { stdout, stderr: stdout });
    const command = root.commands.find((candidate) => candidate.name() === name);
    if (!command) throw new Error(`there is no command ${name}`);
    sections.push(
      `## ${name}`,
      ...(membersOf(command).length === 0
        ? [helpOf(command)]
        : [
            `${command.description()}.`,
            ...membersOf(command).flatMap((member) => memberSections(member, name)),
          ]),
    );
  }
  return `${[PROSE.trim(), ...sections].join('\n\n')}\n`;
};

const membersOf = (command: Command): readonly Command[] =>
  command.commands.filter((member) => member.name() !== 'help');

/** Of a group its members, under their whole names. */
const memberSections = (member: Command, above: string): readonly string[] => {
  const name = `${above} ${member.name()}`;
  return membersOf(member).length === 0
    ? [`### ${name}`, helpOf(member)]
    : membersOf(member).flatMap((below) => memberSections(below, name));
};

/** Without the flags of settings, which have a page of their own and change more often. */
const helpOf = (command: Command): string => {
  let text = '';
  for (const option of command.options) if (SETTINGS.has(option.flags)) option.hideHelp();
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
    getOutHelpWidth: () => WIDTH,
    getOutHasColors: () => false,
  });
  command.outputHelp();
  return `\`\`\`text\n${text.trim()}\n\`\`\``;
};
