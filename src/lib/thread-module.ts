/**
 * Finds a thread's program: the module beside the calling module, built or not. Threads do not
 * inherit a loader for TypeScript, so it is registered first if Node needs one.
 */
export const threadModule = (name: string, beside: string): URL => {
  if (!beside.endsWith('.ts')) return new URL(`${name}.js`, beside);
  const source = new URL(`${name}.ts`, beside);
  if ('typescript' in process.features && process.features.typescript !== false) return source;
  const program = [
    "import { register } from 'node:module';",
    `register('tsx/esm', { parentURL: '${source.href}', data: {} });`,
    `await import('${source.href}');`,
  ];
  return new URL(`data:text/javascript,${program.join(' ')}`);
};
