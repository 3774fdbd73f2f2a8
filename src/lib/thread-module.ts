/** The module beside the caller, built or not. Threads inherit no loader for TypeScript. */
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
