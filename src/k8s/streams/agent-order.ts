export interface AgentOrder {
  readonly argv: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly told?: string;
}

/** Encodes an order for the agent (native/README.md). Throws at a NUL. */
export const agentOrder = ({ argv, cwd, env = {}, told }: AgentOrder): Buffer => {
  const words = [
    ...(told === undefined ? [] : ['told', told]),
    ...(cwd === undefined ? [] : ['cwd', cwd]),
    ...Object.entries(env).flatMap(([name, value]) => ['env', `${name}=${value}`]),
    ...argv.flatMap((argument) => ['arg', argument]),
    'go',
  ];
  if (words.some((word) => word.includes('\0')))
    throw new Error('a command, its folder or its environment contains a NUL');
  return Buffer.from(words.map((word) => `${word}\0`).join(''));
};
